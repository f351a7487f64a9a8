"""Records cross from a host to the first one: whole lines, in order, each once."""

from pathlib import Path

import pytest

from dragoman.launch.control import gathering
from dragoman.launch.control.gathering import Gathered, Outgoing
from dragoman.run.folder import RunFolder


@pytest.fixture
def folders(tmp_path) -> tuple[RunFolder, RunFolder]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return RunFolder(tmp_path / "a"), RunFolder(tmp_path / "b")


def send(tail: Outgoing, gathered: Gathered) -> int:
    messages = list(tail.news())
    for message in messages:
        assert gathered.add("b", message) is None
    return len(messages)


def append(folder: RunFolder, name: str, text: str) -> Path:
    path = folder.path / name
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    return path


def test_half_a_line_waits_until_it_is_whole(folders):
    a, b = folders
    tail, gathered = Outgoing(b, {}), Gathered(a)
    append(b, "timing.rank-001.jsonl", '{"ü": 1}\n{"half')
    assert send(tail, gathered) == 1
    assert (a.path / "timing.rank-001.jsonl").read_text() == '{"ü": 1}\n'
    assert send(tail, gathered) == 0
    append(b, "timing.rank-001.jsonl", '": 2}\n')
    assert send(tail, gathered) == 1
    assert (a.path / "timing.rank-001.jsonl").read_text() == (b.path / "timing.rank-001.jsonl").read_text()


def test_a_later_attempt_sends_only_what_is_new(folders):
    a, b = folders
    append(b, "system.b.jsonl", "1\n2\n")
    gathered = Gathered(a)
    send(Outgoing(b, gathered.offsets("b")), gathered)
    gathered.save()
    append(b, "system.b.jsonl", "3\n")
    again = Gathered(a)
    assert send(Outgoing(b, again.offsets("b")), again) == 1
    assert (a.path / "system.b.jsonl").read_text() == "1\n2\n3\n"


def test_long_files_come_in_blocks(folders, monkeypatch):
    a, b = folders
    monkeypatch.setattr(gathering, "BLOCK_BYTES", 100)
    path = append(b, "timing.rank-001.jsonl", "".join(f"line {number}\n" for number in range(200)))
    assert send(Outgoing(b, {}), Gathered(a)) > 10
    assert (a.path / path.name).read_bytes() == path.read_bytes()


def test_a_file_that_begins_anew_is_sent_from_its_beginning(folders):
    a, b = folders
    append(b, "timing.rank-001.jsonl", "new\n")
    gathered = Gathered(a)
    send(Outgoing(b, {"timing.rank-001.jsonl": 5000}), gathered)
    assert gathered.offsets("b") == {"timing.rank-001.jsonl": 4}


@pytest.mark.parametrize("name", ["../x.jsonl", "steps.jsonl", "timing.rank-1.jsonl/../manifest.json", "/etc/passwd"])
def test_a_host_cannot_write_other_files(folders, name):
    gathered = Gathered(folders[0])
    gathered.add("b", {"file": name, "offset": 0, "text": "x\n"})
    assert list(folders[0].path.rglob("*")) == []


def test_a_full_disk_is_said_once_and_the_rest_is_left_to_the_next_attempt(folders, monkeypatch):
    a, _ = folders
    gathered = Gathered(a)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gathering, "append_lines", full)
    message = {"file": "timing.rank-001.jsonl", "offset": 0, "text": "x\n"}
    assert "No space left" in (gathered.add("b", message) or "")
    monkeypatch.undo()
    assert gathered.add("b", {**message, "offset": 2}) is None
    assert gathered.offsets("b") == {}
