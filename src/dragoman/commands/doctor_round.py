"""What doctor is asked for, and what its rounds have found so far. Shared by the files beside this one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.diagnose.preflight.checks import Check, HostFacts
    from dragoman.diagnose.preflight.link import Route

Say = Callable[[str], None]
Measurements = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """What the user asked for."""

    recipe: "Recipe | None"
    data: Path | None
    workers: int | None
    interface: str | None
    subnet: str | None


def _our_versions() -> dict[str, str]:
    from dragoman.launch.hosts.package import versions

    return versions()


@dataclass
class Round:
    """What has been found so far."""

    hosts: "list[HostFacts]" = field(default_factory=list[Any])
    ranks: dict[str, int] = field(default_factory=dict[str, int])
    prices: dict[str, float | None] = field(default_factory=dict[str, float | None])
    checks: "list[Check]" = field(default_factory=list[Any])  # of reaching, network and measuring
    route: "Route | None" = None
    measured: Measurements | None = None  # by the ranks
    ours: dict[str, str] = field(default_factory=_our_versions)  # of the machine that asks
