"""A run on another host, followed through a session."""

import shutil

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.run.reader import read_run
from dragoman.web.watch import far_side, place
from dragoman.web.watch.far_side import news_of_run
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.place import There, open_place
from growing_run import GrowingRun
from sample_run import files_of
from stand_in_hosts import stand_in_hosts


class Session:
    """As HostSession, without a host."""

    is_broken = False

    def __init__(self, host):
        self.host = host

    def __enter__(self):
        if Session.is_broken:
            raise DragomanError("b: does not answer", "look at it")
        return self

    def call(self, op, **arguments):
        assert op == "news_of_run"
        return news_of_run(**arguments)

    def close(self):
        pass


@pytest.fixture
def there(tmp_path):
    Session.is_broken = False
    followed = There("b:run", Host("b", "b"), str(tmp_path / "run"), Session)
    yield followed
    followed.close()


def test_what_is_appended_there_arrives_here(there, tmp_path):
    assert not there.look().is_there
    run = GrowingRun(tmp_path / "run")
    run.steps(20)
    run.samples(3)
    (run.folder.checkpoints_path / "step-00000020").mkdir()
    vitals = there.look()
    assert vitals.is_there and not vitals.problem
    run.steps(5)
    run.resume(25)  # replaces the manifest whole
    there.look()
    here = files_of(there.folder.path)
    assert here == {name: data for name, data in files_of(run.folder.path).items() if "checkpoints" not in name}
    live = LiveRun(there.folder)
    live.refresh()
    assert live.last.step == 25 and len(live.manifest.attempts) == 2
    assert len(read_run(there.folder.path).timings) == 50


def test_only_new_bytes_travel(there, tmp_path, monkeypatch):
    run = GrowingRun(tmp_path / "run")
    run.steps(200)
    there.look()
    answers = []
    monkeypatch.setattr(Session, "call", lambda _, op, **given: answers.append(news_of_run(**given)) or answers[-1])
    there.look()
    assert answers[-1]["pieces"] == []
    run.steps(1)
    there.look()
    pieces = answers[-1]["pieces"]
    assert sorted(piece["name"] for piece in pieces) == [
        "steps.jsonl",
        "timing.rank-000.jsonl",
        "timing.rank-001.jsonl",
    ]
    assert max(len(piece["data"]) for piece in pieces) < 500


def test_a_long_run_comes_in_several_answers(there, tmp_path, monkeypatch):
    monkeypatch.setattr(far_side, "ANSWER_BYTES", 20_000)
    run = GrowingRun(tmp_path / "run")
    run.steps(300)
    there.look()
    assert not there.is_whole
    assert LiveRun(there.folder).refresh(), "a page shows what is there meanwhile"
    for _ in range(10):
        there.look()
    assert there.is_whole and files_of(there.folder.path) == files_of(run.folder.path)


def test_a_folder_that_disappears_there_disappears_here(there, tmp_path):
    run = GrowingRun(tmp_path / "run")
    run.steps(2)
    there.look()
    shutil.rmtree(run.folder.path)
    assert not there.look().is_there
    assert files_of(there.folder.path) == {}


def test_a_host_that_does_not_answer_is_asked_again(there, tmp_path, monkeypatch):
    monkeypatch.setattr(place, "AGAIN_SECONDS", 0.0)
    run = GrowingRun(tmp_path / "run")
    run.steps(2)
    Session.is_broken = True
    assert "b: does not answer" in there.look().problem
    Session.is_broken = False
    assert there.look().problem == "" and (there.folder.path / "steps.jsonl").exists()


def test_the_other_side_cannot_write_elsewhere(there, monkeypatch):
    piece = {"name": "../../evil", "stamp": 1, "offset": 0, "data": ""}
    answer = {"is_there": True, "gone": [], "pieces": [piece], "is_more": False, "vitals": {}}
    monkeypatch.setattr(Session, "call", lambda *_, **__: answer)
    assert "does not lie in its folder" in there.look().problem


def test_through_a_real_session(tmp_path, monkeypatch):
    folder = stand_in_hosts(tmp_path, monkeypatch, "b")
    run = GrowingRun(folder / "b" / "runs" / "mine")
    run.steps(3)
    followed = open_place("b:runs/mine")
    try:
        assert followed.look().is_there
        assert (followed.folder.path / "steps.jsonl").read_bytes() == run.folder.steps_path.read_bytes()
    finally:
        followed.close()
    assert not followed.folder.path.exists()
