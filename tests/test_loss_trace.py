"""Twenty steps in float64 that a refactor must not change.

Renew after a change that is meant to alter training: python tests/test_loss_trace.py --renew
"""

import json
import os
import sys
from pathlib import Path

import pytest

from small_runs import records, train_here

TRACE = Path(__file__).parent / "golden" / "loss_trace.json"
RENEW = "DRAGOMAN_RENEW_GOLDEN"
HOW = "if that is meant: python tests/test_loss_trace.py --renew"


# Stated here, so that a recipe tuned for the demo does not change the trace; the rest is TINY_RUN.
SETTINGS = (
    "model.norm=pre",
    "optim.method=adamw",
    "optim.betas=[0.9, 0.98]",
    "optim.schedule=cosine",
    "optim.learning_rate=0.003",
    "optim.weight_decay=0.01",
    "optim.max_norm=0.7",
    "train.label_smoothing=0.1",
    "train.max_steps=20",
    "train.precision=fp64",
    "evaluate.every_steps=20",
    "evaluate.decode=false",
)


def trace_of(data: Path, run: Path) -> dict:
    assert train_here(data, run, *SETTINGS) == 0
    steps = records(run, "steps")
    return {
        "data": json.loads((data / "manifest.json").read_text())["fingerprint"],
        "loss": [step["loss"] for step in steps],
        "gradient_norm": [step["gradient_norm"] for step in steps],
        "dev_loss": records(run, "evals")[-1]["loss"],
    }


def test_the_losses_of_twenty_steps_are_those_on_record(phrasebook_data, tmp_path):
    trace = trace_of(phrasebook_data, tmp_path / "run")
    if os.environ.get(RENEW):
        TRACE.write_text(json.dumps(trace, indent=1) + "\n")
    golden = json.loads(TRACE.read_text())
    assert len(golden["loss"]) == 20
    assert trace["data"] == golden["data"], f"prepare gives other data than on record; {HOW}"
    for key in ("loss", "gradient_norm", "dev_loss"):
        assert trace[key] == pytest.approx(golden[key], rel=1e-9), f"{key} differs from the one on record; {HOW}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--renew"]:
        sys.exit(__doc__)
    os.environ[RENEW] = "1"
    sys.exit(pytest.main(["-q", __file__]))
