"""Checks of the GPUs: present, healthy, at their full power, free, and alike. Pure rules: facts in, checks out."""

from collections.abc import Sequence

from dragoman.diagnose.preflight.checks import Check, GpuFacts, HostFacts, Level, Needs
from dragoman.units import format_bytes

LEAST_LIMIT_SHARE = 0.95  # of the usual power or clock
MUCH_USED_SHARE = 0.1
THROTTLED_BY = "heat", "hardware slowdown", "power brake"


def check_gpus(hosts: Sequence[HostFacts], needs: Needs) -> list[Check]:
    """Every rule on every host that has GPUs, and how hosts compare."""
    found: list[Check] = []
    for host in hosts:
        found.append(check_present(host, needs))
        if host.gpus:
            found += [check_health(host), check_speed_limits(host), check_free_memory(host, needs)]
    return [*found, *check_alike(hosts)]


def check_present(host: HostFacts, needs: Needs) -> Check:
    if host.gpu_problem:
        advice = "look at `nvidia-smi`; install or restart the driver"
        return Check("gpu-present", "hurts", host.name, "the GPU does not answer", host.gpu_problem, advice)
    if not host.gpus:
        return Check("gpu-present", "ok", host.name, "GPUs", "none: it trains on its processors")
    names = ", ".join(f"{sum(gpu.name == name for gpu in host.gpus)} x {name}" for name in _names(host))
    num_ranks = needs.ranks.get(host.name, len(host.gpus))
    if num_ranks > len(host.gpus):
        evidence = f"{names} for {num_ranks} workers, which will share them"
        return Check("gpu-present", "note", host.name, "GPUs", evidence, "one worker per GPU")
    if num_ranks < len(host.gpus):
        evidence = f"{names}, of which {num_ranks} will work"
        return Check("gpu-present", "note", host.name, "GPUs", evidence, f"--workers {len(host.gpus)} uses them all")
    return Check("gpu-present", "ok", host.name, "GPUs", names)


def check_health(host: HostFacts) -> Check:
    ill = [
        f"GPU {gpu.index}: {gpu.num_ecc_errors} uncorrected memory errors" for gpu in host.gpus if gpu.num_ecc_errors
    ]
    ill += [f"GPU {gpu.index}: memory waits for a reset to be mended" for gpu in host.gpus if gpu.needs_reset]
    if ill:
        advice = "reset the GPU (`nvidia-smi -r`) or restart the host; where it comes back, return the machine"
        return Check("gpu-health", "hurts", host.name, "GPU memory has errors", "; ".join(ill), advice)
    known = any(gpu.num_ecc_errors is not None for gpu in host.gpus)
    return Check("gpu-health", "ok", host.name, "GPU health", "no memory errors" if known else "no errors reported")


def check_speed_limits(host: HostFacts) -> Check:
    """What holds a GPU below its usual speed: a cap somebody set, or the chip protecting itself."""
    capped = [text for gpu in host.gpus for text in _caps(gpu)]
    braked = [
        f"GPU {gpu.index}: slowed down by {', '.join(gpu.throttle_reasons)}"
        for gpu in host.gpus
        if any(reason.startswith(THROTTLED_BY) for reason in gpu.throttle_reasons)
    ]
    if braked:
        advice = "see to cooling and power supply, or return the machine"
        return Check("gpu-clocks", "hurts", host.name, "GPU is slowed down", "; ".join(braked + capped), advice)
    if capped:
        advice = "`nvidia-smi -pl WATTS` and `nvidia-smi -rgc` restore them, where the provider lets you"
        return Check("gpu-clocks", "note", host.name, "GPU is capped", "; ".join(capped), advice)
    return Check("gpu-clocks", "ok", host.name, "GPU clocks and power", "not limited")


def _caps(gpu: GpuFacts) -> list[str]:
    found: list[str] = []
    limit, usual = gpu.power_limit_watts, gpu.default_power_watts
    if limit and usual and limit < LEAST_LIMIT_SHARE * usual:
        found.append(f"GPU {gpu.index}: {limit:.0f} W of {usual:.0f} W")
    clock, most = gpu.clock_limit_mhz, gpu.max_clock_mhz
    if clock and most and clock < LEAST_LIMIT_SHARE * most:
        found.append(f"GPU {gpu.index}: at most {clock} MHz of {most} MHz")
    return found


def check_free_memory(host: HostFacts, needs: Needs) -> Check:
    """Whoever else is on the GPU takes memory and time."""
    num_ranks = needs.ranks.get(host.name, len(host.gpus))
    per_gpu = needs.rank_bytes * -(-num_ranks // max(1, len(host.gpus)))
    taken: list[str] = []
    level: Level = "ok"
    for gpu in host.gpus:
        total, used = gpu.memory_total_bytes or 0, gpu.memory_used_bytes or 0
        is_short = 0 < total < used + per_gpu
        if is_short or used > MUCH_USED_SHARE * total or gpu.num_processes:
            others = f" by {gpu.num_processes} processes" if gpu.num_processes else ""
            need = f"; training needs about {format_bytes(per_gpu)}" if is_short else ""
            taken.append(f"GPU {gpu.index}: {format_bytes(used)} of {format_bytes(total)} taken{others}{need}")
            level = "hurts" if is_short or level == "hurts" else "note"
    if not taken:
        free = min((gpu.memory_total_bytes or 0) - (gpu.memory_used_bytes or 0) for gpu in host.gpus)
        return Check("gpu-memory", "ok", host.name, "GPU memory", f"{format_bytes(free)} free or more")
    advice = "end what else uses it (`nvidia-smi` lists it), raise batch.num_microbatches, or take a smaller recipe"
    return Check("gpu-memory", level, host.name, "GPU memory", "; ".join(taken), advice)


def check_alike(hosts: Sequence[HostFacts]) -> list[Check]:
    """In every step all wait for the slowest."""
    kinds = {host.name: _names(host) for host in hosts}
    distinct = {name for names in kinds.values() for name in (names or ["none"])}
    if not any(kinds.values()):
        return []
    if len(distinct) == 1:
        return [Check("gpus-alike", "ok", "", "GPUs are alike", next(iter(distinct)))]
    evidence = "; ".join(f"{host}: {', '.join(names) or 'none'}" for host, names in kinds.items())
    advice = "in every step all wait for the slowest: leave the slow ones out, or take equal machines"
    return [Check("gpus-alike", "note", "", "GPUs differ", evidence, advice)]


def _names(host: HostFacts) -> list[str]:
    return list(dict.fromkeys(gpu.name for gpu in host.gpus))
