"""Checks of the machines themselves, before anything is measured between them. Pure rules: facts in, checks out."""

import ipaddress
from collections.abc import Callable, Sequence

from dragoman.diagnose.preflight.checks import SETUP, Check, HostFacts, Level, Needs
from dragoman.diagnose.wording import percent, seconds_text
from dragoman.units import format_bytes

LEAST_DISK_BYTES = 2 << 30
SLOW_DISK, VERY_SLOW_DISK = 50e6, 10e6
LONG_SAVE_SECONDS = 30.0
LEAST_MEMORY_SHARE = 0.1
MUCH_SWAP_BYTES = 1 << 30
BUSY_SHARE = 0.25
FEW_FILES, TOO_FEW_FILES = 1_024, 256
SKEW_SECONDS, BAD_SKEW_SECONDS = 1.0, 30.0

HostRule = Callable[[HostFacts, Needs, int], Check]
VERSIONS = {"dragoman": "Dragoman", "code": "code of Dragoman", "torch": "torch", "python": "Python"}


def check_hosts(hosts: Sequence[HostFacts], needs: Needs) -> list[Check]:
    """Every rule on every host, rule by rule."""
    return [rule(host, needs, len(hosts)) for rule in HOST_RULES for host in hosts]


def check_together(hosts: Sequence[HostFacts], ours: dict[str, str]) -> list[Check]:
    """What only shows between hosts: versions, twins, clocks. `ours`: the versions of the machine that asks."""
    checks = check_versions(hosts, ours)
    if len(hosts) > 1:
        checks += [*check_twins(hosts), check_clocks(hosts)]
    return checks


def check_versions(hosts: Sequence[HostFacts], ours: dict[str, str]) -> list[Check]:
    """Dragoman must be that of the machine that asks; torch and Python those of the first host."""
    found: list[Check] = []
    for host in hosts:
        wanted = {**hosts[0].versions, "dragoman": ours["dragoman"], "code": ours["code"]}
        other = [key for key in VERSIONS if host.versions.get(key, "") != wanted.get(key, "")]
        if not host.versions.get("torch"):
            found.append(Check("versions", "hurts", host.name, "versions", "torch is not installed", SETUP))
        elif other:
            words = [_version_words(key, host.versions.get(key, ""), wanted.get(key, "")) for key in other]
            found.append(Check("versions", "hurts", host.name, "versions differ", "; ".join(words), SETUP))
    if found:
        return found
    first = hosts[0].versions
    evidence = ", ".join(f"{VERSIONS[key]} {first.get(key, '')}" for key in ("dragoman", "torch", "python"))
    return [Check("versions", "ok", "", "versions", evidence)]


def _version_words(key: str, have: str, wanted: str) -> str:
    return "other code of the same version" if key == "code" else f"{VERSIONS[key]} {have}, not {wanted}"


def check_twins(hosts: Sequence[HostFacts]) -> list[Check]:
    """Two names of one machine."""
    first: dict[tuple[str, ...], str] = {}
    found: list[Check] = []
    for host in hosts:
        other = first.setdefault(host.identity, host.name)
        if other != host.name:
            evidence = f"{host.name} is the same machine as {other}"
            found.append(Check("same-machine", "hurts", host.name, "named twice", evidence, f"name it once: {other}:2"))
    return found


def check_clocks(hosts: Sequence[HostFacts]) -> Check:
    """Records of all hosts are put on one time line."""
    ahead = sorted(hosts, key=lambda host: host.clock_ahead_seconds)
    error = sum(host.clock_error_seconds for host in (ahead[0], ahead[-1]))
    skew = max(0.0, ahead[-1].clock_ahead_seconds - ahead[0].clock_ahead_seconds - error)
    level: Level = "hurts" if skew > BAD_SKEW_SECONDS else "note" if skew > SKEW_SECONDS else "ok"
    if level == "ok":
        evidence = f"within {seconds_text(max(skew, error, 0.001))}"
        return Check("clock-skew", level, "", "clocks agree", evidence)
    evidence = f"{ahead[-1].name} is {seconds_text(skew)} ahead of {ahead[0].name}"
    advice = "let the hosts take their time from the network: `timedatectl set-ntp true`"
    return Check("clock-skew", level, "", "clocks differ", evidence, advice)


def check_memory(host: HostFacts, needs: Needs, _num_hosts: int) -> Check:
    """Room for the ranks, where they compute on processors; for data and checkpoints else."""
    needed = 0 if host.gpus else needs.rank_bytes * needs.ranks.get(host.name, 1)
    free, total = host.memory_free_bytes, max(host.memory_bytes, 1)
    evidence = f"{format_bytes(free)} of {format_bytes(total)} free"
    if needed > free:
        evidence += f"; training needs about {format_bytes(needed)}"
        return Check("memory", "hurts", host.name, "memory", evidence, "raise batch.num_microbatches, or end what runs")
    level: Level = "note" if free < LEAST_MEMORY_SHARE * total else "ok"
    advice = "" if level == "ok" else "see with `ps aux --sort -rss` who has it"
    return Check("memory", level, host.name, "memory", evidence, advice)


def check_swap(host: HostFacts, _needs: Needs, _num_hosts: int) -> Check:
    used = host.swap_used_bytes
    evidence = f"{format_bytes(used)} in use" if used else "none in use"
    if used < MUCH_SWAP_BYTES:
        return Check("swap", "ok", host.name, "swap", evidence)
    return Check("swap", "note", host.name, "swap", evidence, "memory was short once: end what is not needed")


def check_load(host: HostFacts, _needs: Needs, _num_hosts: int) -> Check:
    """Others on the same cores make this host the one that all wait for."""
    if host.cpu_busy is None:
        return Check("cpu-busy", "ok", host.name, "processors", f"{host.num_cores} cores, load not known")
    evidence = f"{host.num_cores} cores, {percent(host.cpu_busy)} taken by others"
    if host.cpu_busy < BUSY_SHARE:
        return Check("cpu-busy", "ok", host.name, "processors", evidence)
    advice = "end what else runs: in every step all hosts wait for the slowest"
    return Check("cpu-busy", "note", host.name, "processors", evidence, advice)


def check_disk_room(host: HostFacts, needs: Needs, _num_hosts: int) -> Check:
    needed = max(needs.disk_bytes, LEAST_DISK_BYTES)
    if host.disk_free_bytes is None:
        problem = host.disk_problem or "cannot be written to"
        return Check("disk-room", "hurts", host.name, "disk", f"{host.folder}: {problem}", "run from another folder")
    evidence = f"{format_bytes(host.disk_free_bytes)} free in {host.folder}"
    if host.disk_free_bytes >= needed:
        return Check("disk-room", "ok", host.name, "room on the disk", evidence)
    evidence += f"; the run keeps about {format_bytes(needed)}"
    advice = "make room, name a --run on another disk, or lower checkpoint.keep_last"
    return Check("disk-room", "hurts", host.name, "room on the disk", evidence, advice)


def check_disk_speed(host: HostFacts, needs: Needs, _num_hosts: int) -> Check:
    rate = host.disk_bytes_per_second
    if rate is None:
        evidence = host.disk_problem or "not measured"
        return Check(
            "disk-speed", "note", host.name, "speed of the disk", evidence, "see that the folder can be written"
        )
    save_seconds = needs.checkpoint_bytes / rate
    evidence = f"{format_bytes(rate)}/s written and synced"
    if needs.checkpoint_bytes:
        evidence += f": a checkpoint of {format_bytes(needs.checkpoint_bytes)} takes {seconds_text(save_seconds)}"
    level: Level = "ok"
    if rate < SLOW_DISK or save_seconds > LONG_SAVE_SECONDS:
        level = "hurts" if rate < VERY_SLOW_DISK and save_seconds > LONG_SAVE_SECONDS else "note"
    advice = "" if level == "ok" else "name a --run on a faster disk, or save less often (checkpoint.every_steps)"
    return Check("disk-speed", level, host.name, "speed of the disk", evidence, advice)


def check_limits(host: HostFacts, _needs: Needs, _num_hosts: int) -> Check:
    files, locked = host.max_open_files, host.max_locked_bytes
    if files is not None and files < FEW_FILES:
        level: Level = "hurts" if files < TOO_FEW_FILES else "note"
        evidence = f"a process may open {files} files"
        return Check("limits", level, host.name, "limits", evidence, "raise it: `ulimit -n 4096`, or limits.conf")
    if host.has_infiniband and locked is not None:
        evidence = f"a process may lock {format_bytes(locked)}, and InfiniBand locks its buffers"
        return Check(
            "limits", "note", host.name, "limits", evidence, "`ulimit -l unlimited`, or memlock in limits.conf"
        )
    shown = "any number of" if files is None else f"{files:,}"
    return Check("limits", "ok", host.name, "limits", f"{shown} open files")


def check_name(host: HostFacts, _needs: Needs, num_hosts: int) -> Check:
    """Libraries that look up their own host by name find themselves on the loopback."""
    addresses = host.hostname_addresses
    if num_hosts == 1:
        return Check("name-resolution", "ok", host.name, "own name", f"{host.hostname}: one host needs none")
    advice = f"give {host.hostname} its private address in /etc/hosts; Dragoman names the card itself and goes on"
    if not addresses:
        evidence = f"{host.hostname} does not resolve on itself"
        return Check("name-resolution", "note", host.name, "own name", evidence, advice)
    if all(ipaddress.ip_address(address).is_loopback for address in addresses):
        evidence = f"{host.hostname} is {addresses[0]} on itself, where no other host can reach it"
        return Check("name-resolution", "note", host.name, "own name", evidence, advice)
    return Check("name-resolution", "ok", host.name, "own name", f"{host.hostname} is {', '.join(addresses)}")


def check_port(host: HostFacts, _needs: Needs, _num_hosts: int) -> Check:
    if not host.port_problem:
        return Check("port", "ok", host.name, "ports", "can be opened")
    advice = "only a run started by hand (--node-rank) needs it: give that one another --port"
    return Check("port", "note", host.name, "ports", host.port_problem, advice)


HOST_RULES: tuple[HostRule, ...] = (
    check_memory,
    check_swap,
    check_load,
    check_disk_room,
    check_disk_speed,
    check_limits,
    check_name,
    check_port,
)
