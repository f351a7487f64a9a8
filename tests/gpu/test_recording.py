"""On a GPU: times from its own queue, read late, and what NVML says. Skipped without one."""

import os
import time

import pytest
import torch

from command_line import changes, run_dragoman
from dragoman.run.reader import read_run
from dragoman.train.clocks import clock_of
from dragoman.train.meter import PHASES, Meter
from dragoman.train.nvml import GpuReader

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
CYCLES = 200_000_000  # about a tenth of a second


def test_a_phase_has_the_time_of_its_kernels_and_the_host_waits_for_none():
    meter = Meter(clock_of(torch.device("cuda")))
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    start = time.perf_counter()
    meter.begin("forward")
    torch.cuda._sleep(CYCLES)
    meter.begin("backward")
    torch.cuda._sleep(2 * CYCLES)
    meter.begin("exchange")
    meter.end_step()
    assert meter.take() == []  # not done yet, and not waited for
    assert time.perf_counter() - start < 0.02
    (times,) = meter.take(wait=True)
    now = time.time()
    assert times.seconds["forward"] > 0.03
    assert times.seconds["backward"] == pytest.approx(2 * times.seconds["forward"], rel=0.1)
    assert sum(times.seconds[name] for name in PHASES) == pytest.approx(times.seconds["wall"], rel=0.1)
    assert times.exchange_start == pytest.approx(now, abs=0.05)
    assert times.end == pytest.approx(now, abs=0.05)


def test_a_run_records_times_that_add_up_and_what_the_gpu_did(phrasebook_data, tmp_path):
    settings = changes("train.max_steps=1500", "evaluate.every_steps=500", "batch.target_tokens=4000")
    environment = {**os.environ, "DRAGOMAN_DEVICE": "auto"}
    run_dragoman(
        "train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / "run", *settings, env=environment
    )
    run = read_run(tmp_path / "run")
    assert len(run.timings) == len(run.steps) == 1500
    for timing in run.timings:
        parts = sum(getattr(timing, f"{name}_seconds") for name in (*PHASES, "other"))
        assert parts == pytest.approx(timing.wall_seconds, rel=0.02)
        assert timing.forward_seconds > 0
    wall = sum(timing.wall_seconds for timing in run.timings)
    assert run.timings[-1].time - run.timings[0].time == pytest.approx(wall, rel=0.05)
    gpus = [gpu for sample in run.samples for gpu in sample.gpus]
    assert gpus
    assert max(gpu.memory_used_bytes or 0 for gpu in gpus) > 2**28
    assert all(gpu.busy is None or 0 <= gpu.busy <= 1 for gpu in gpus)
    assert sum(sample.num_dropped for sample in run.samples) == 0
    assert run.profile.compute.peak_flops > 1e13
    assert run.profile.compute.device.startswith("NVIDIA")


def test_nvml_answers():
    (gpu, *_), num_dropped = GpuReader().read()
    assert gpu.memory_total_bytes > 2**33
    assert gpu.power_watts > 0
    assert 0 < gpu.clock_mhz <= gpu.max_clock_mhz
    assert num_dropped == 0
