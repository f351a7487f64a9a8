import os
import subprocess
import sys
import time

import pytest
from run_samples import a_manifest, a_step, an_eval

from dragoman.errors import DragomanError
from dragoman.run import writer as writer_module
from dragoman.run.reader import read_run
from dragoman.run.records import EvalSentence, TimingRecord
from dragoman.run.writer import RunWriter, append_lines, write_manifest


def test_every_record_goes_to_its_file(folder):
    timing = TimingRecord(1, 1001.0, 1, 3, "anna", *[0.1] * 8, 0.8)
    with RunWriter(folder, 1) as writer:
        writer.write(a_step(1))
        writer.write(timing)
        writer.write(an_eval(1))
        writer.write_event("checkpoint", 1, files={"weights.safetensors": 12})
        writer.write_sentences(1, "dev", [EvalSentence(0, "a", "b", "c", 1.0, 2)])
    run = read_run(folder.path)
    assert (run.steps, run.timings, run.evals) == ((a_step(1),), (timing,), (an_eval(1),))
    assert run.events[0].detail == {"files": {"weights.safetensors": 12}}
    assert run.read_eval_sentences(1, "dev")[0].hypothesis == "c"
    assert folder.timing_path(3).is_file()


def test_records_reach_the_disk_while_training_goes_on(folder):
    with RunWriter(folder, 1, flush_seconds=0.01) as writer:
        writer.write(a_step(1))
        deadline = time.monotonic() + 5
        while not is_written(folder.steps_path) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert is_written(folder.steps_path)


def is_written(path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def test_a_torn_last_line_costs_only_itself(folder):
    folder.steps_path.write_text('{"attempt": 1, "ste')
    with RunWriter(folder, 2) as writer:
        writer.write(a_step(1, attempt=2))
    run = read_run(folder.path)
    assert run.steps == (a_step(1, attempt=2),)
    assert run.num_bad_lines == {"steps.jsonl": 1}


def test_a_full_disk_is_counted_said_once_and_survived(folder, capsys):
    folder.steps_path.symlink_to("/dev/full")
    with RunWriter(folder, 1, flush_seconds=0.01) as writer:
        for step in range(1, 4):
            writer.write(a_step(step))
            time.sleep(0.05)
        writer.write_event("warning", 3)
    assert writer.num_lost == 3
    assert capsys.readouterr().err.count("warning:") == 1
    folder.steps_path.unlink()
    assert len(read_run(folder.path).events) == 1, "other files go on"


def test_what_fits_only_in_part_is_cut_off_again(folder, monkeypatch):
    append_lines(folder.steps_path, ["one\n"])

    class HalfFull:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            if len(data) < 5:
                raise OSError(28, "No space left on device")
            return self.file.write(data[:5])

    real_open = type(folder.path).open
    monkeypatch.setattr(type(folder.path), "open", lambda self, *a, **k: HalfFull(real_open(self, *a, **k)))
    with pytest.raises(OSError, match="No space"):
        append_lines(folder.steps_path, ["two and more\n"])
    assert folder.steps_path.read_bytes() == b"one\n"


def test_nothing_raises_into_training(folder, capsys, monkeypatch):
    circle: dict[str, object] = {}
    circle["again"] = circle
    with RunWriter(folder, 1) as writer:
        writer.write_event("warning", 1, **circle)
        monkeypatch.setattr(writer_module, "MAX_WAITING", 0)
        writer.write(a_step(1))
    writer.write(a_step(2))
    writer.close()
    assert writer.num_lost == 3
    assert "training goes on" in capsys.readouterr().err


def test_a_process_that_forgets_to_close_loses_nothing(folder):
    code = (
        "import sys; from dragoman.run.folder import RunFolder; from dragoman.run.writer import RunWriter\n"
        "from pathlib import Path\n"
        f"RunWriter(RunFolder(Path({str(folder.path)!r})), 1, flush_seconds=60).write_event('started', 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    assert [event.kind for event in read_run(folder.path).events] == ["started"]


def test_a_manifest_is_replaced_whole_or_not_at_all(folder, monkeypatch):
    before = folder.manifest_path.read_bytes()

    def no_room(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(DragomanError, match="No space left"):
        write_manifest(folder, a_manifest())
    assert folder.manifest_path.read_bytes() == before
    assert [path.name for path in folder.path.iterdir() if path.name.endswith(".tmp")] == []
