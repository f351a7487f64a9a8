"""A handful of faults in a real run on two emulated hosts; and that the checks see what they are there for."""

import os
import subprocess
import sys

import pytest

from fault_hosts import HOST, MARK
from fault_kinds import Fault
from fault_live import LiveRun, Settings
from fault_plan import RunPlan

SETTINGS = Settings("dense", num_hosts=2, num_workers=1, every_steps=5, max_steps=80)


def fault(kind: str, at_step: int, host_number: int, seconds: float = 0.0) -> Fault:
    return Fault(kind, at_step, 0.3, host_number, worker_number=0, seconds=seconds, seed=1)


FAULTS = (
    fault("disk-full-log", 5, host_number=0, seconds=0.7),
    fault("clock-jump", 10, host_number=1),
    fault("kill-worker", 20, host_number=1),
    fault("term-agent", 40, host_number=0),
)


@pytest.fixture(scope="module")
def lines(tried_run):
    """Of the faults, of the run, and of the run once it was spoilt on purpose."""
    return tried_run(RunPlan(0, SETTINGS, FAULTS), spoil=spoil)


def spoil(live: LiveRun) -> None:
    """One weight, one file, one process."""
    weights = live.hosts.run_folder("a").checkpoints_path / "last" / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    (live.hosts.run_folder("b").checkpoints_path / ".step-00000080.0.tmp").mkdir()
    environment = {**os.environ, MARK: live.hosts.mark, HOST: "b"}
    orphan = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment, text=True)
    live.hosts.adopt(orphan)


def test_a_run_comes_through_faults_with_the_weights_of_one_without(lines):
    *faults, run, _ = lines
    assert [line["kind"] for line in faults] == [one.kind for one in FAULTS]
    assert [line["problems"] for line in (*faults, run)] == [[]] * 5
    assert run["weights"] == "equal bit for bit"
    assert run["exit_codes"][-1] == 0


def test_a_fault_says_what_it_cost(lines):
    full, jumped, killed, told = lines[:4]
    assert (full["new_attempts"], jumped["new_attempts"], killed["new_attempts"], told["new_attempts"]) == (0, 0, 1, 1)
    assert killed["resumed_from"] >= killed["checkpoint_before"] >= 5
    assert killed["lost_steps"] < 20
    assert killed["recovery_seconds"] > 1
    assert (told["lost_steps"], told["typed_again"][0]["exit_code"]) == (0, 143)


def test_what_is_wrong_at_the_end_of_a_run_is_found(lines):
    spoilt = lines[-1]
    assert spoilt["leftovers"] == {"b": ["checkpoints/.step-00000080.0.tmp"]}
    assert spoilt["orphans"] == [f"{sys.executable} -c input()"]
    assert spoilt["weights"].startswith("off by ")
    found = " ".join(spoilt["problems"])
    for words in (
        "processes left",
        "temporary files left",
        "weights off by",
        "host a: last is step 80, weights.safetensors has other bytes",
        "the hosts saved different weights at steps [80]",
    ):
        assert words in found
