"""A copy elsewhere, all the time: by ssh and by URL, whole or not at all, and never in training's way."""

import json
import os
import threading
import time
from pathlib import Path

import fsspec
import pytest

from dragoman.commands.train_hosts import MIRROR_SECONDS, mirror_place
from dragoman.errors import DragomanError
from dragoman.launch.copying import mirror
from dragoman.launch.copying.mirror import check_mirror, copy_changes, mirror_run, start_mirror
from dragoman.launch.copying.mirror_target import COMMAND_SECONDS, open_target
from dragoman.run.checkpoint_files import STATE, WEIGHTS
from sample_run import NUM_STEPS, files_of, write_checkpoint, write_sample_run, write_steps
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def run(tmp_path, monkeypatch):
    stand_in_hosts(tmp_path, monkeypatch, "b")
    return write_sample_run(tmp_path / "runs" / "mine")


@pytest.fixture(params=["b:backup/mine", "file", "path"])
def destination(request, tmp_path) -> str:
    places = {"file": f"file://{tmp_path}/b/backup/mine", "path": f"{tmp_path}/b/backup/mine"}
    return places.get(request.param, request.param)


@pytest.fixture
def copy(tmp_path) -> Path:
    return tmp_path / "b" / "backup" / "mine"


def test_the_copy_is_the_run(run, destination, copy):
    check_mirror(destination)
    assert copy_changes(run.path, destination) > 0
    assert files_of(copy) == files_of(run.path)
    assert copy_changes(run.path, destination) == 0
    assert not [entry.name for entry in copy.rglob(".*")], "something was left behind"


def test_only_what_changed_is_sent_again(run, destination, copy):
    copy_changes(run.path, destination)
    write_steps(run, NUM_STEPS + 1, NUM_STEPS + 1)
    assert copy_changes(run.path, destination) == 3
    assert files_of(copy) == files_of(run.path)


def test_checkpoints_that_were_thinned_out_go_there_too(run, destination, copy):
    old = write_checkpoint(run, 5)
    copy_changes(run.path, destination)
    assert (copy / "checkpoints" / old.name).is_dir()
    for file in old.iterdir():
        file.unlink()
    old.rmdir()
    write_checkpoint(run, 40)
    run.set_pointer("last", 40)
    copy_changes(run.path, destination)
    assert files_of(copy) == files_of(run.path)


def test_half_a_checkpoint_is_not_sent(run, destination, copy):
    fresh = run.checkpoints_path / ".step-00000040.tmp"
    fresh.mkdir()
    (fresh / "weights.safetensors").write_bytes(b"half")
    copy_changes(run.path, destination)
    assert {path.name for path in (copy / "checkpoints").iterdir()} == {"last", "step-00000020"}


def test_a_checkpoint_that_arrives_in_part_does_not_get_its_name(run, copy, tmp_path, monkeypatch):
    """The stream ends between two files, with which tar is content."""
    client = tmp_path / "client.sh"
    client.write_text(f'head -c 1024 | {os.environ["DRAGOMAN_SSH"]} "$@"\n')
    monkeypatch.setenv("DRAGOMAN_SSH", f"sh {client}")
    step = run.step_checkpoint(NUM_STEPS)
    name = step.relative_to(run.path).as_posix()
    assert (step / STATE).stat().st_size <= 512, "the first file does not end there"
    with pytest.raises(DragomanError, match="b: the transfer broke off"):
        open_target("b:backup/mine").put_folder(run.path, name, [STATE, WEIGHTS])
    assert not (copy / name).exists()


def test_a_relative_path_begins_at_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mirror_place("backup/x") == f"{tmp_path}/backup/x"
    for place in ("b:backup/x", "s3://bucket/x", "/srv/x", "~/x"):
        assert mirror_place(place) == place
    assert MIRROR_SECONDS > COMMAND_SECONDS


def test_the_next_attempt_does_not_begin_anew(run, destination):
    copy_changes(run.path, destination)
    assert json.loads((run.path / mirror.STATE_NAME).read_text())["destination"] == destination
    assert copy_changes(run.path, destination) == 0
    assert copy_changes(run.path, destination + "2") > 0, "another place has nothing yet"


def test_an_object_store(run):
    copy_changes(run.path, "memory://bucket/mine")
    files = fsspec.filesystem("memory")
    expected = {name for name, value in files_of(run.path).items() if isinstance(value, bytes)}
    assert {name.removeprefix("/bucket/mine/") for name in files.find("/bucket/mine")} == expected
    assert files.cat_file("/bucket/mine/steps.jsonl") == run.steps_path.read_bytes()


def test_a_password_stays_in_memory(run):
    said = []
    stop = threading.Event()
    stop.set()
    mirror_run(run.path, "sftp://me:SECRET@127.0.0.1:1/mine", stop, said.append)
    copy_changes(run.path, "memory://me:SECRET@bucket/mine")
    assert said and "SECRET" not in "".join(said)
    assert "SECRET" not in (run.path / ".mirror.json").read_text()
    assert copy_changes(run.path, "memory://me:SECRET@bucket/mine") == 0, "it is still known where the copy is"
    with pytest.raises(DragomanError) as caught:
        check_mirror("nothing://me:SECRET@host/x")
    assert "SECRET" not in str(caught.value)


def test_a_large_log_is_not_sent_every_time(run, destination, monkeypatch):
    copy_changes(run.path, destination)
    monkeypatch.setattr(mirror, "MAX_BYTES_PER_SECOND", 1)
    write_steps(run, NUM_STEPS + 1, NUM_STEPS + 1)
    assert copy_changes(run.path, destination, is_last=False) == 0
    assert copy_changes(run.path, destination, is_last=True) == 3


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("zz:backup", "zz: its name does not resolve"),
        ("b:/proc/none", "b: .*cannot create directory"),
        ("/proc/none", "cannot write to /proc/none"),
        ("nothing://x", "Protocol not known: nothing"),
        ("s3://bucket/x", "[Ii]nstall s3fs"),
    ],
)
def test_a_place_that_cannot_be_written_is_said_at_once(run, place, problem):
    with pytest.raises(DragomanError, match=problem) as raised:
        check_mirror(place)
    assert raised.value.hint


def test_a_mirror_that_fails_warns_once_tries_again_and_says_when_it_works(run, tmp_path, copy):
    said: list[str] = []
    stop = threading.Event()
    blocker = tmp_path / "b" / "backup"
    blocker.write_text("a file in the way")
    thread = threading.Thread(target=mirror_run, args=(run.path, "b:backup/mine", stop, said.append, 0.05))
    thread.start()
    wait_for(lambda: said)
    time.sleep(0.3)
    blocker.unlink()
    wait_for(lambda: len(said) == 2)
    stop.set()
    thread.join(20)
    assert "warning: the mirror b:backup/mine fails" in said[0] and "trying again" in said[0]
    assert said[1:] == ["the mirror b:backup/mine works again"]
    assert files_of(copy) == files_of(run.path)


def test_what_a_backend_raises_does_not_get_through(run, monkeypatch):
    said: list[str] = []
    stop = threading.Event()
    stop.set()
    monkeypatch.setattr(mirror, "open_target", lambda _: 1 / 0)
    assert mirror_run(run.path, "b:x", stop, said.append) is False
    assert "ZeroDivisionError" in said[0]


def test_the_thread_copies_once_more_at_the_end(run, copy):
    said: list[str] = []
    thread = start_mirror(run.path, "b:backup/mine", said.append)
    wait_for((copy / "checkpoints" / "last").is_symlink)
    write_steps(run, NUM_STEPS + 1, NUM_STEPS + 1)
    assert thread.stop() is True
    assert files_of(copy) == files_of(run.path) and not said


def wait_for(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
