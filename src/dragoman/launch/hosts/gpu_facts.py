"""What NVIDIA's library says about the health and the limits of this host's GPUs. Runs on the host; no torch."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from dragoman.diagnose.preflight.checks import GpuFacts

NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")
# Bits of NVML's answer to why a GPU does not run at its full clock, as far as they tell of trouble.
THROTTLE_REASONS = {0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat (hardware)", 0x80: "power brake"}


def gpu_facts() -> tuple[tuple[GpuFacts, ...], str]:
    """Every GPU, and why there is no answer where an NVIDIA card is plugged in and none comes."""
    try:
        nvml: Any = import_module("pynvml")
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(_facts(nvml, index, handle) for index, handle in enumerate(handles)), ""
    except ImportError:
        return (), "nvidia-ml-py is not installed" if _has_card() else ""
    except Exception as error:  # NVML has an error of its own for everything that a driver may lack
        return (), f"NVML: {error}" if _has_card() else ""


def _has_card() -> bool:
    """By the PCI bus, which knows a card without a driver too."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = ((device / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == NVIDIA_VENDOR and kind.startswith(DISPLAY_CLASSES):
            return True
    return False


def _facts(nvml: Any, index: int, handle: Any) -> GpuFacts:
    name = _ask(lambda: nvml.nvmlDeviceGetName(handle))
    memory = _ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    limit = _ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    usual = _ask(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle))
    processes = _ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    errors = _ask(
        lambda: nvml.nvmlDeviceGetTotalEccErrors(
            handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
    )
    bits = _ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
    remapped = _ask(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    return GpuFacts(
        index=index,
        name=name.decode() if isinstance(name, bytes) else name or "GPU",
        memory_total_bytes=None if memory is None else int(memory.total),
        memory_used_bytes=None if memory is None else int(memory.used),
        num_processes=None if processes is None else len(processes),
        power_limit_watts=None if limit is None else limit / 1000,
        default_power_watts=None if usual is None else usual / 1000,
        max_clock_mhz=_ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        clock_limit_mhz=_clock_limit(nvml, handle),
        num_ecc_errors=errors,
        needs_reset=bool(remapped and remapped[2])
        or bool(_ask(lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle))),
        throttle_reasons=tuple(reason for bit, reason in THROTTLE_REASONS.items() if bits & bit),
    )


def _clock_limit(nvml: Any, handle: Any) -> int | None:
    """The clock that somebody set for applications, where it is not the card's own default."""
    clock = _ask(lambda: nvml.nvmlDeviceGetApplicationsClock(handle, nvml.NVML_CLOCK_SM))
    usual = _ask(lambda: nvml.nvmlDeviceGetDefaultApplicationsClock(handle, nvml.NVML_CLOCK_SM))
    return clock if clock is not None and usual is not None and clock < usual else None


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception:  # what a card does not know is no fact
        return None
