"""Machines and links as people write them before renting: `2x2:V100`, `4x1:A100`, `2xcpu`, `100mbit`. No torch."""

import re
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.plan.gpus import Gpu, find_gpu
from dragoman.plan.traffic import Placement

MACHINE_EXAMPLES = "write HOSTSxGPUS:NAME such as 2x2:V100 or 1x8:H100, or 2xcpu or 2xcpu:16 (cores of each)"
LINK_EXAMPLES = "write a port speed such as 100mbit or 1gbit, or what was measured to get through: 220MB/s"
# Of a port's bits, what is left for data after Ethernet, IP and TCP: 95.6 Mb/s were measured on 100.
PAYLOAD_SHARE = 0.956
USUAL_CORES = 8
MOST_HOSTS, MOST_RANKS = 1_000, 64
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True, slots=True)
class Machines:
    """As many hosts of one kind."""

    num_hosts: int
    ranks_per_host: int
    gpu: Gpu | None  # None: processors only, one rank a host
    num_cores: int = USUAL_CORES

    @property
    def placement(self) -> Placement:
        return Placement(self.num_hosts, self.num_hosts * self.ranks_per_host)

    @property
    def name(self) -> str:
        if self.gpu is None:
            return f"{_hosts(self.num_hosts)} with {self.num_cores} cores, no GPU"
        return f"{_hosts(self.num_hosts)} with {self.ranks_per_host} x {self.gpu.name}"


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def parse_machines(text: str) -> Machines:
    """`2x2:V100` is two hosts with two V100s each."""
    plain = text.strip()
    cpus = re.fullmatch(r"(\d+)\s*x\s*cpu(?::(\d+))?", plain, re.IGNORECASE)
    if cpus:
        return _checked(Machines(int(cpus[1]), 1, None, int(cpus[2] or USUAL_CORES)), text)
    match = re.fullmatch(r"(\d+)\s*x\s*(\d+)\s*:\s*(.+)", plain)
    if match is None:
        raise DragomanError(f"{text!r} does not say how many machines with how many GPUs", MACHINE_EXAMPLES)
    return _checked(Machines(int(match[1]), int(match[2]), find_gpu(match[3])), text)


def _checked(machines: Machines, text: str) -> Machines:
    is_sane = 1 <= machines.num_hosts <= MOST_HOSTS and 1 <= machines.ranks_per_host <= MOST_RANKS
    if not is_sane or machines.num_cores < 1:
        raise DragomanError(
            f"{text!r} is no set of machines: 1 to {MOST_HOSTS:,} hosts, 1 to {MOST_RANKS} GPUs each", MACHINE_EXAMPLES
        )
    return machines


def parse_link(text: str) -> float:
    """Bytes a second that get through each way. `1gbit` is a port's speed, `220MB/s` a measured one."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG])(bit(?:/s)?|b/s|bps|B/s)", text.strip())
    if match is None:
        raise DragomanError(f"{text!r} is no link speed", LINK_EXAMPLES)
    rate = float(match[1]) * _PREFIXES[match[2].lower()]
    usable = rate if match[3] == "B/s" else rate / 8 * PAYLOAD_SHARE
    if not 1e3 <= usable <= 1e12:
        raise DragomanError(f"a link of {text} is not of this world", LINK_EXAMPLES)
    return usable
