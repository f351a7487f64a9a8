"""The campaign finds what it looks for: readers that write, raise, take too much memory or talk in several lines."""

from pathlib import Path

import pytest
from fuzz_readers import READERS, Reader
from fuzz_runs import BrokenPromiseError, run_reader

from dragoman.errors import DragomanError


def make(folder: Path) -> None:
    folder.mkdir()
    (folder / "values.json").write_text('{"a": [1, 2, 3], "b": "c"}')


def is_whole(folder: Path) -> bool:
    path = folder / "values.json"
    return path.is_file() and path.read_bytes() == b'{"a": [1, 2, 3], "b": "c"}'


def write(folder: Path) -> None:
    (folder / "cache").touch()


def touch(folder: Path) -> None:
    if (folder / "values.json").is_file():
        (folder / "values.json").touch()


def fail(folder: Path) -> None:
    raise KeyError("a")


def take_memory(folder: Path) -> None:
    bytearray(1 << 40)


def talk(folder: Path) -> None:
    raise DragomanError("two\nlines")


@pytest.mark.parametrize("fault", [write, touch, fail, take_memory, talk])
def test_a_reader_that_breaks_its_promise_is_named_with_its_seed(monkeypatch, fault):
    def read(folder: Path) -> None:
        if not is_whole(folder):
            fault(folder)

    reader = Reader("bad", make, read, lambda folder: ["values.json"])
    monkeypatch.setitem(READERS, "bad", reader)
    with pytest.raises(BrokenPromiseError, match=r"reader bad, seed \d+"):
        run_reader("bad", 20)


def test_the_same_seeds_do_the_same_damage(monkeypatch):
    seen: list[bytes] = []

    def read(folder: Path) -> None:
        path = folder / "values.json"
        seen.append(path.read_bytes() if path.is_file() else b"")

    monkeypatch.setitem(READERS, "same", Reader("same", make, read, lambda folder: ["values.json"]))
    run_reader("same", 30)
    run_reader("same", 30)
    assert seen[:31] == seen[31:]
    assert len(set(seen)) > 20
