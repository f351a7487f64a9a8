"""Findings while a run goes on: a process of its own looks, each finding is told once, and it ends with its starter."""

import shutil
import time
from pathlib import Path

import pytest
import torch

from dragoman.diagnose.live import new_findings
from dragoman.dist.world import World
from dragoman.run.notices import VARIABLE
from dragoman.run.reader import read_run
from dragoman.run.records import Event, to_line
from dragoman.run.writer import append_lines
from dragoman.train.findings import Findings
from dragoman.train.job import Job
from dragoman.train.progress import Progress
from dragoman.train.recorder import Recorder
from small_runs import tiny_job
from web_hook import web_hook

GOLDEN = Path(__file__).parents[2] / "golden" / "runs"


@pytest.fixture
def slow_run(tmp_path) -> Path:
    run = Path(shutil.copytree(GOLDEN / "network-bound", tmp_path / "run"))
    lines = (run / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if '"kind": "finding"' not in line]
    assert len(kept) == len(lines) - 1  # it was told once, while the run went on
    (run / "events.jsonl").write_text("".join(kept), encoding="utf-8")
    return run


def test_a_process_looks_and_what_it_finds_is_told(slow_run):
    told = []
    findings = Findings(slow_run, told.append)
    deadline = time.monotonic() + 30
    while not told and time.monotonic() < deadline:
        time.sleep(0.05)
    start = time.monotonic()
    findings.close()
    assert time.monotonic() - start < 3  # it rests, and wakes when its input ends
    assert [finding["code"] for finding in told] == ["network-bound"]
    assert told[0]["advice"]
    assert findings._process.returncode == 0


def test_what_was_told_once_is_not_told_again(slow_run):
    assert [finding.code for finding in new_findings(read_run(slow_run), set())] == ["network-bound"]
    assert new_findings(read_run(slow_run), {"network-bound"}) == []
    append_lines(slow_run / "events.jsonl", [to_line(Event(1, 1.0, "finding", 20, {"code": "network-bound"}))])
    assert new_findings(read_run(slow_run), set()) == []  # an earlier attempt told it


def test_a_folder_that_is_gone_ends_it_quietly(tmp_path):
    told = []
    findings = Findings(tmp_path / "gone", told.append)
    findings._process.wait(20)
    findings.close()
    assert told == []


@pytest.mark.parametrize(("rank", "events"), [(0, ["finding", "stopped"]), (1, [])])
def test_a_finding_is_told_to_the_web_address_by_the_first_rank(phrasebook_data, tmp_path, monkeypatch, rank, events):
    job = Job.from_json(tiny_job(phrasebook_data, tmp_path / "run"))
    with web_hook() as hook:
        monkeypatch.setenv(VARIABLE, hook.address)
        recorder = Recorder(job, World(rank, 2, rank, torch.device("cpu")), 1)
        if rank == 0:
            finding = {"code": "slow", "level": "warning", "title": "It is slow", "evidence": "Yes.", "advice": "Wait."}
            recorder._finding(finding)
        else:
            recorder._notices._leave_behind()  # as where this rank fails: the first one speaks for the run
        recorder.end(Progress(step=3), "preempted")
    assert hook.events == events
    assert [message["text"] for message in hook.messages[:1]] == ["run: warning (slow): It is slow: Yes. Wait."][
        : len(events)
    ]
