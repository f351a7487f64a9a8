"""A run comes home: what is copied, what is verified, and what is said to be missing."""

import json
import os
import re
import threading

import psutil
import pytest

from dragoman.errors import DragomanError
from dragoman.launch.copying import fetching
from dragoman.launch.copying.fetching import fetch_run, list_run
from dragoman.launch.copying.transfer import place_link, safe_path
from dragoman.launch.hosts.hosts import Host
from dragoman.run.checkpoint_files import WEIGHTS, rank_file
from dragoman.run.control import Control, write_control
from dragoman.run.folder import lock_run
from sample_run import NUM_STEPS, files_of, write_checkpoint, write_sample_run, write_steps
from small_runs import dragoman_here
from stand_in_hosts import stand_in_hosts

HOST = Host("a", "a")


@pytest.fixture
def there(tmp_path, monkeypatch):
    """The run on host a; the current folder is another one, at home."""
    stand_in_hosts(tmp_path, monkeypatch, "a")
    folder = write_sample_run(tmp_path / "a" / "runs" / "mine")
    folder.lock_path.touch()
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return folder


def fetch(to=None):
    return fetch_run(HOST, "runs/mine", to, print)


def test_everything_comes_home_and_the_machines_may_go(there, monkeypatch, capsys, tmp_path):
    assert dragoman_here(monkeypatch, "fetch", "a:runs/mine") == 0
    assert "everything is here, you can cancel a, b\n" in capsys.readouterr().out
    assert files_of(tmp_path / "home" / "mine") == files_of(there.path)


def test_a_second_time_only_what_is_new_is_copied(there):
    assert fetch().num_copied == len(files_of(there.path))
    assert (fetch().num_copied, fetch().missing) == (0, ())
    write_steps(there, NUM_STEPS + 1, NUM_STEPS + 1)
    again = fetch()
    assert again.num_copied == 3, "steps and the timing of two ranks"
    assert again.missing == () and files_of(again.folder) == files_of(there.path)


def test_a_copy_that_was_damaged_at_home_is_mended(there):
    home = fetch().folder
    path = home / "checkpoints" / there.step_checkpoint(NUM_STEPS).name / WEIGHTS
    path.write_bytes(b"x" * path.stat().st_size)
    assert fetch().num_copied == 1
    assert files_of(home) == files_of(there.path)


@pytest.mark.parametrize("num_bytes", [100, 70_000])
def test_what_has_arrived_stays_when_the_transfer_breaks_off(there, tmp_path, monkeypatch, num_bytes):
    """Inside the first file, and inside the weights."""
    client = tmp_path / "client.sh"
    real = f'{os.environ["DRAGOMAN_SSH"]} "$@"'
    client.write_text(f'case "$*" in *" send "*) {real} | head -c {num_bytes};; *) {real};; esac\n')
    with monkeypatch.context() as broken:
        broken.setenv("DRAGOMAN_SSH", f"sh {client}")
        with pytest.raises(DragomanError, match="a: the transfer broke off"):
            fetch()
    arrived = files_of(tmp_path / "home" / "mine")
    assert ("manifest.json" in arrived) == (num_bytes > 10_000)
    fetched = fetch()
    assert fetched.missing == () and files_of(fetched.folder) == files_of(there.path)
    assert fetched.num_copied == len(files_of(there.path)) - len(arrived)


def test_what_a_fetch_left_that_broke_off_at_its_first_file(there, tmp_path):
    home = tmp_path / "home" / "mine"
    home.mkdir()
    (home / ".manifest.json.part").write_bytes(b"half")
    assert fetch().missing == ()


def test_what_arrived_is_hashed_once_more_and_not_oftener(there, monkeypatch):
    hashed: list[str] = []
    real = fetching.file_sha256
    monkeypatch.setattr(fetching, "file_sha256", lambda path: hashed.append(path.name) or real(path))
    fetched = fetch()
    assert len(hashed) == len([1 for value in files_of(fetched.folder).values() if isinstance(value, bytes)])


def test_a_file_that_cannot_be_read_there_is_not_left_out(there, monkeypatch):
    def refuse(*_) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fetching, "_sha256", refuse)
    with pytest.raises(DragomanError, match=r"cannot read .*/runs/mine/.*: Permission denied"):
        list_run(str(there.path))


def test_an_earlier_copy_that_cannot_be_read_here_is_named(there, monkeypatch):
    def refuse(_) -> str:
        raise PermissionError(13, "Permission denied")

    fetch()
    monkeypatch.setattr(fetching, "file_sha256", refuse)
    with pytest.raises(DragomanError, match=r"cannot read mine/.*: Permission denied"):
        fetch()


@pytest.mark.parametrize("to", ["file/sub", "/proc/none"])
def test_a_place_where_no_folder_can_be(there, tmp_path, monkeypatch, capsys, to):
    (tmp_path / "home" / "file").touch()
    assert dragoman_here(monkeypatch, "fetch", "a:runs/mine", "--to", to) == 2
    assert re.search(r"lies below one|cannot write to /proc/none", capsys.readouterr().err)


def test_the_outcome_as_json(there, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "fetch", "a:runs/mine", "--to", "x", "--json") == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["is_whole"] and outcome["folder"] == "x" and outcome["hosts"] == ["a", "b"]


def test_a_run_that_goes_on_is_said_to(there, monkeypatch, capsys):
    me = psutil.Process()
    write_control(there, Control("running", 1, me.pid, me.create_time(), "a", "10.0.0.1", 1))
    assert dragoman_here(monkeypatch, "fetch", "a:runs/mine") == 1
    out = capsys.readouterr().out
    assert "still going on" in out and "you can cancel" not in out


def test_a_controller_that_died_is_said_to(there):
    write_control(there, Control("running", 1, 2**22 - 1, 0.0, "a", "10.0.0.1", 1))
    assert "the controller of the run died ('running' was its last word)" in fetch().missing[0]


def test_a_run_of_one_machine_goes_on_as_long_as_its_lock_is_held(there):
    with lock_run(there):
        assert "still going on" in fetch().missing[0]
    assert fetch().missing == ()


def test_records_that_were_not_gathered(there):
    write_steps(there, NUM_STEPS + 1, NUM_STEPS + 5, ranks=(0,))
    assert fetch().missing == ("the records of rank 1 end at step 20, the run at 25: not gathered",)


def test_a_checkpoint_that_is_damaged_at_its_source(there):
    path = write_checkpoint(there, 5)
    (path / WEIGHTS).write_bytes(b"x")
    (problem,) = fetch().missing
    assert problem.startswith("checkpoint step-00000005 is damaged: weights.safetensors has other bytes")


def test_what_other_hosts_keep_is_told_and_does_not_count_as_missing(there, monkeypatch, capsys):
    assert fetch().notes == ()
    (there.step_checkpoint(NUM_STEPS) / rank_file(0)).touch()
    assert dragoman_here(monkeypatch, "fetch", "a:runs/mine") == 0
    out = capsys.readouterr().out
    assert "note: the exchange state of rank 1 in step-00000020 is on their hosts only" in out


def test_a_run_that_is_only_being_mirrored_has_ended(there):
    me = psutil.Process()
    write_control(there, Control("ended", 1, me.pid, me.create_time(), "a", "10.0.0.1", 1))
    assert fetch().missing == ()


def test_a_pointer_that_leads_nowhere(there):
    there.set_pointer("best-bleu", 7)
    assert fetch().missing == ("checkpoints/best-bleu leads to step-00000007, which is not here",)


def test_a_file_that_grows_arrives_as_it_was_listed(there, monkeypatch):
    real = fetching.receive_files

    def grow_first(*arguments):
        write_steps(there, NUM_STEPS + 1, NUM_STEPS + 1)
        return real(*arguments)

    before = files_of(there.path)
    monkeypatch.setattr(fetching, "receive_files", grow_first)
    assert files_of(fetch().folder) == before


def test_a_file_that_is_replaced_meanwhile_is_copied_again(there, monkeypatch):
    real, has_changed = fetching.receive_files, threading.Event()

    def replace_first(*arguments):
        if not has_changed.is_set():
            has_changed.set()
            text = (there.path / "control.json").read_text()
            (there.path / "control.json").write_text(text.replace('"port": 1', '"port": 2'))
        return real(*arguments)

    monkeypatch.setattr(fetching, "receive_files", replace_first)
    fetched = fetch()
    assert fetched.missing == () and files_of(fetched.folder) == files_of(there.path)


@pytest.mark.parametrize("content", ["other run", "other files", "a file"])
def test_another_folder_is_not_touched(there, tmp_path, content):
    to = tmp_path / "home" / "x"
    if content == "other run":
        write_sample_run(to, created=5.0)
    elif content == "a file":
        to.touch()
    else:
        to.mkdir()
        (to / "thesis.txt").touch()
    before = files_of(tmp_path / "home")
    with pytest.raises(DragomanError, match=r"holds another run|holds other files|is a file"):
        fetch(to)
    assert files_of(tmp_path / "home") == before


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("a:runs/none", "a: there is no folder"),
        ("a:.", "a: .* is not a run folder"),
        ("zz:runs/x", "zz: its name does not resolve"),
        ("runs/x", "'runs/x' is not HOST:RUN"),
    ],
)
def test_a_wrong_place_is_one_line(there, monkeypatch, capsys, word, problem):
    assert dragoman_here(monkeypatch, "fetch", word) == 2
    assert re.search(problem, capsys.readouterr().err)


def test_names_that_lead_out_of_the_folder_are_refused(tmp_path):
    for name in ("../x", "/etc/passwd", "a/../../x", ""):
        with pytest.raises(DragomanError, match="does not lie in its folder"):
            safe_path(tmp_path, name)
    with pytest.raises(DragomanError, match="leads out"):
        place_link(tmp_path / "last", "/etc")


def test_the_listing_leaves_out_what_is_being_written(there):
    (there.path / ".steps.jsonl.part").touch()
    (there.checkpoints_path / ".step-00000009.tmp").mkdir()
    (there.checkpoints_path / ".step-00000009.tmp" / WEIGHTS).touch()
    names = {entry[0] for entry in list_run(str(there.path))["files"]}
    assert names == files_of(there.path).keys()
