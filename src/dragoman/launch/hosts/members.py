"""The hosts of a run once everything is known about them. Plain data that crosses between machines as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.launch.hosts.hosts import Host


@dataclass(frozen=True)
class Member:
    """A host as it takes part in a run. `address` and `interface` are those of the network that was chosen."""

    name: str
    target: str
    port: int | None
    python: str | None
    address: str
    interface: str
    num_workers: int
    price_per_hour: float | None = None

    @property
    def host(self) -> Host:
        """The way to reach it."""
        return Host(self.name, self.target, self.port, self.num_workers, self.price_per_hour, self.address, self.python)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Member":
        """Passes over what a later version may have added."""
        return cls(**{key: value for key, value in values.items() if key in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Team:
    """The members in order (the first one owns the run), the network between them, and the paths they all use."""

    members: tuple[Member, ...]
    subnet: str  # 10.0.0.0/24, or what else the addresses have in common
    link_bytes_per_second: float | None  # of the slowest pair; None for one host
    data: str
    run: str
    fingerprint: str  # of the data
    is_first_here: bool  # the first host is the machine of the caller

    @property
    def world_size(self) -> int:
        return sum(member.num_workers for member in self.members)
