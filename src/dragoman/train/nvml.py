"""What NVIDIA's own library says about the GPUs of this host; nothing where there is none."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.run.samples import GpuSample

MOST_WATTS, MOST_CELSIUS, MOST_MHZ = 3_000, 130, 10_000
# Bits of NVML's answer to why a GPU does not run at its full clock. Idling and the user's own settings are no reasons.
THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


class GpuReader:
    """Opens NVML once. Every answer that a GPU refuses, or that cannot be true, is None; the latter are counted."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: list[Any] = []
        try:
            self._nvml = import_module("pynvml")
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        except Exception:  # no package, no driver, no GPU: all the same here
            self._handles = []
        self._num_dropped = 0

    def read(self) -> tuple[list[GpuSample], int]:
        """One sample per GPU, and how many readings were left out."""
        self._num_dropped = 0
        samples = [self._sample(index, handle) for index, handle in enumerate(self._handles)]
        return samples, self._num_dropped

    def _sample(self, index: int, handle: Any) -> GpuSample:
        nvml = self._nvml
        memory = self._ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        busy = self._number(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 100)
        power = self._number(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000, MOST_WATTS)
        limit = self._number(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000, MOST_WATTS)
        clock = self._number(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM), MOST_MHZ)
        max_clock = self._number(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM), MOST_MHZ)
        heat = self._number(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU), MOST_CELSIUS)
        bits = self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        return GpuSample(
            index=index,
            busy=None if busy is None else busy / 100,
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            power_watts=power,
            power_limit_watts=limit,
            clock_mhz=None if clock is None else int(clock),
            max_clock_mhz=None if max_clock is None else int(max_clock),
            temperature_celsius=None if heat is None else int(heat),
            throttle_reasons=tuple(reason for bit, reason in THROTTLE_REASONS.items() if bits & bit),
        )

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception:  # NVML has an error of its own for everything that a card does not know
            return None

    def _number(self, question: Callable[[], float], most: float) -> float | None:
        value = self._ask(question)
        if value is not None and not 0 <= value <= most:
            self._num_dropped += 1
            return None
        return value
