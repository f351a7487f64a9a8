"""What a host does each second: read from the real machine, and what counters cannot have done."""

import time
from collections import namedtuple

import pytest

from dragoman.run.folder import create_run_folder
from dragoman.run.reader import _read_lines
from dragoman.run.samples import SystemSample
from dragoman.run.writer import RunWriter
from dragoman.train import nvml, sampler
from dragoman.train.nvml import GpuReader
from dragoman.train.sampler import Sampler, card_samples

Counters = namedtuple("Counters", "sent received sent_packets received_packets errin errout dropin dropout")
BEFORE = Counters(1_000, 2_000, 10, 20, 0, 0, 0, 0)


def cards(after: Counters, speed: int | None = None, seconds: float = 1.0):
    return card_samples({"eth0": BEFORE}, {"eth0": after}, {"eth0": speed}, seconds)


def test_a_card_counts_what_crossed_it():
    (card,), num_dropped = cards(Counters(1_500, 2_700, 15, 27, 0, 1, 2, 0))
    assert (card.sent_bytes, card.received_bytes, card.sent_packets, card.received_packets) == (500, 700, 5, 7)
    assert (card.num_drops, num_dropped) == (3, 0)


@pytest.mark.parametrize(
    ("after", "speed"),
    [
        (Counters(500, 2_700, 15, 27, 0, 0, 0, 0), None),  # the counter was reset
        (Counters(10**15, 2_700, 15, 27, 0, 0, 0, 0), None),  # faster than any card
        (Counters(200_000_000, 2_700, 15, 27, 0, 0, 0, 0), 10**9),  # faster than this card
    ],
)
def test_an_impossible_reading_is_left_out_and_counted(after, speed):
    assert cards(after, speed) == ([], 1)


def test_a_card_as_fast_as_it_says_is_believed():
    assert cards(Counters(124_000_000, 2_700, 15, 27, 0, 0, 0, 0), 10**9)[1] == 0


def test_a_card_that_just_appeared_has_no_past():
    assert card_samples({}, {"eth0": BEFORE}, {}, 1.0) == ([], 0)


def test_samples_of_this_machine_reach_the_run_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sampler, "EVERY_SECONDS", 0.05)
    folder = create_run_folder(tmp_path / "run")
    with RunWriter(folder, 3) as writer:
        reading = Sampler(3, "anna/1", folder.path, writer.write)
        time.sleep(0.4)
        reading.close()
    samples, num_bad = _read_lines(folder.system_path("anna/1"), SystemSample)
    assert folder.system_paths() == [folder.system_path("anna/1")]
    assert len(samples) >= 3
    assert num_bad == 0
    last = samples[-1]
    assert (last.attempt, last.host) == (3, "anna/1")
    assert 0 <= last.cpu_busy <= 1
    assert 0 < last.memory_used_bytes < last.memory_total_bytes
    assert last.disk_free_bytes > 0
    assert 0.04 < last.interval_seconds < 5


def test_a_run_of_less_than_a_second_has_one_sample(tmp_path):
    seen = []
    Sampler(1, "a", tmp_path, seen.append).close()
    assert len(seen) == 1


def test_a_sampler_that_stumbles_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sampler, "EVERY_SECONDS", 0.02)
    seen = []

    def write(sample: SystemSample) -> None:
        seen.append(sample)
        if len(seen) == 1:
            raise OSError("no")

    reading = Sampler(1, "a", tmp_path, write)
    time.sleep(0.4)
    reading.close()
    assert len(seen) > 1


class Nvml:
    """As much of NVML as is asked, with one odd answer."""

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def nvmlInit(self): ...
    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUtilizationRates(self, _):
        return namedtuple("Rates", "gpu")(97)

    def nvmlDeviceGetMemoryInfo(self, _):
        return namedtuple("Memory", "used total")(30, 80)

    def nvmlDeviceGetPowerUsage(self, _):
        return 4_294_967_295

    def nvmlDeviceGetEnforcedPowerLimit(self, _):
        return 300_000

    def nvmlDeviceGetClockInfo(self, *_):
        return 1_200

    def nvmlDeviceGetMaxClockInfo(self, *_):
        raise RuntimeError("not supported")

    def nvmlDeviceGetTemperature(self, *_):
        return 61

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _):
        return 0x1 | 0x4 | 0x40


def test_gpus_are_read_and_what_cannot_be_true_is_left_out(monkeypatch):
    monkeypatch.setattr(nvml, "import_module", lambda _: Nvml())
    (gpu,), num_dropped = GpuReader().read()
    assert (gpu.busy, gpu.memory_used_bytes, gpu.memory_total_bytes) == (0.97, 30, 80)
    assert (gpu.power_watts, gpu.power_limit_watts) == (None, 300)
    assert (gpu.clock_mhz, gpu.max_clock_mhz, gpu.temperature_celsius) == (1_200, None, 61)
    assert gpu.throttle_reasons == ("power cap", "heat (hardware)")
    assert num_dropped == 1


def test_a_machine_without_nvml_has_no_gpus(monkeypatch):
    def missing(_: str) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr(nvml, "import_module", missing)
    assert GpuReader().read() == ([], 0)
