"""One rank runs out of GPU memory: it says so once, and all of them end."""

import os
from pathlib import Path

from dragoman.launch.local import start_workers
from small_runs import kept_signals, tiny_job


def test_all_ranks_end_and_the_one_that_failed_says_why(phrasebook_data, tmp_path, monkeypatch, capfd):
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    job = tiny_job(phrasebook_data, tmp_path / "run", "batch.num_microbatches=auto", "batch.max_pieces=20", workers=2)
    with kept_signals():
        assert start_workers("out_of_memory_program", [job], 2) == 2
    said = capfd.readouterr().err
    assert said.count("out of GPU memory with microbatches of 50 target tokens (8 a step)") == 1
    assert "error: rank 1 on " in said
    assert "--set batch.num_microbatches=16" in said
    assert "Traceback" not in said
