"""What is looked at before a run: the facts that hosts report about themselves, and the shape of a check.

Every rule is a pure function of facts; `hosts`, `gpus` and `link` beside this file hold them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

Level = Literal["ok", "note", "hurts"]
SETUP = "`dragoman setup --hosts ...` installs the same everywhere"


@dataclass(frozen=True, slots=True)
class Check:
    """The answer of one rule on one host, or on all of them together (`host` is empty then)."""

    code: str
    level: Level
    host: str
    title: str
    evidence: str
    advice: str = ""

    @property
    def link(self) -> str:
        return f"docs/checks.md#{self.code}"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "link": self.link}


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A network card of a host."""

    name: str
    address: str
    bits_per_second: int | None = None  # as the kernel has it
    is_virtual: bool = False  # made by software: its speed is a matter of form


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU, as NVML sees it. None: it did not say."""

    index: int
    name: str
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    num_processes: int | None = None
    power_limit_watts: float | None = None
    default_power_watts: float | None = None
    max_clock_mhz: int | None = None  # of the chip
    clock_limit_mhz: int | None = None  # set by somebody
    num_ecc_errors: int | None = None  # uncorrected, since the last start
    needs_reset: bool = False  # pages to retire, rows to remap
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host's word on itself."""

    name: str
    versions: dict[str, str] = field(default_factory=dict[str, str])
    identity: tuple[str, ...] = ()  # equal for two names of one machine
    hostname: str = ""
    hostname_addresses: tuple[str, ...] = ()  # what its own name resolves to
    cpu: str = ""
    num_cores: int = 0
    cpu_busy: float | None = None  # 0 to 1, by other processes
    memory_bytes: int = 0
    memory_free_bytes: int = 0  # for a process that asks now
    swap_used_bytes: int = 0
    folder: str = ""  # where a run would be written
    disk_free_bytes: int | None = None
    disk_bytes_per_second: float | None = None  # written and synced
    disk_problem: str = ""
    max_open_files: int | None = None
    max_locked_bytes: int | None = None  # None: no limit
    has_infiniband: bool = False
    port_problem: str = ""
    cards: tuple[CardFacts, ...] = ()
    gpus: tuple[GpuFacts, ...] = ()
    gpu_problem: str = ""  # why NVML does not answer, where there is an NVIDIA card
    clock_ahead_seconds: float = 0.0  # of the machine that asks
    clock_error_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Needs:
    """What the run will ask of a host; 0 where no recipe was given."""

    checkpoint_bytes: int = 0  # of one checkpoint
    disk_bytes: int = 0  # of all that are kept
    rank_bytes: int = 0  # of memory, roughly
    ranks: dict[str, int] = field(default_factory=dict[str, int])  # host -> how many


_FACTS = TypeAdapter(HostFacts)


def facts_from(values: Mapping[str, Any]) -> HostFacts:
    """What crossed from a host as JSON."""
    return _FACTS.validate_python(dict(values))


def worst(checks: Sequence[Check]) -> Level:
    """The level of all together."""
    levels = {check.level for check in checks}
    return "hurts" if "hurts" in levels else "note" if "note" in levels else "ok"
