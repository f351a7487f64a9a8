"""A handful of faults in a real run on two emulated hosts; and that the checks see what they are there for."""

import os
import subprocess
import sys

import fault_checks
from fault_hosts import HOST, MARK
from fault_kinds import Fault
from fault_live import LiveRun, Settings
from fault_plan import RunPlan

SETTINGS = Settings("dense", num_hosts=2, num_workers=1, every_steps=10, max_steps=120)


def fault(kind: str, at_step: int, host_number: int, seconds: float = 0.0) -> Fault:
    return Fault(kind, at_step, 0.3, host_number, worker_number=0, seconds=seconds, seed=1)


FAULTS = (
    fault("disk-full-log", 10, host_number=0, seconds=1.0),
    fault("clock-jump", 20, host_number=1),
    fault("kill-worker", 40, host_number=1),
    fault("term-agent", 70, host_number=0),
)


def test_a_run_comes_through_faults_with_the_weights_of_one_without(tried_run):
    *faults, run = tried_run(RunPlan(0, SETTINGS, FAULTS))
    assert [line["kind"] for line in faults] == [one.kind for one in FAULTS]
    assert [line["problems"] for line in (*faults, run)] == [[]] * 5
    assert run["weights"] == "equal bit for bit"
    killed, told = faults[2:]
    assert killed["new_attempts"] == 1
    assert killed["resumed_from"] >= killed["checkpoint_before"] >= 10
    assert killed["recovery_seconds"] > 1
    assert (told["lost_steps"], told["typed_again"][0]["exit_code"]) == (0, 143)
    assert run["exit_codes"][-1] == 0


def test_what_is_wrong_at_the_end_of_a_run_is_found(tried_run, monkeypatch):
    monkeypatch.setattr(fault_checks, "ORPHAN_SECONDS", 1.0)
    (run,) = tried_run(RunPlan(1, SETTINGS, ()), spoil=spoil)
    assert run["leftovers"] == {"b": ["checkpoints/.step-00000120.0.tmp"]}
    assert run["orphans"] == [f"{sys.executable} -c input()"]
    assert run["weights"].startswith("off by ")
    found = " ".join(run["problems"])
    for words in ("processes left", "temporary files left", "weights off by", "host a: last is step 120"):
        assert words in found
    assert "different weights" not in found, "a's are damaged: nobody looks at them"


def spoil(live: LiveRun) -> None:
    """One weight, one file, one process."""
    weights = live.hosts.run_folder("a").checkpoints_path / "last" / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    (live.hosts.run_folder("b").checkpoints_path / ".step-00000120.0.tmp").mkdir()
    environment = {**os.environ, MARK: live.hosts.mark, HOST: "b"}
    orphan = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment, text=True)
    live.hosts.adopt(orphan)
