import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from dragoman.data import corpus as corpus_module
from dragoman.data.corpus import Corpus, check_inputs, read_chunks
from dragoman.errors import DragomanError

TEXT = "".join(f"Zeile {number} über alles\n" for number in range(2_000)).encode()
PACKERS = {
    "plain.txt": lambda data: data,
    "packed.gz": gzip.compress,
    "packed.xz": lzma.compress,
    "packed.zst": zstandard.compress,
}


def read_source(path: Path, **options: bool) -> bytes:
    chunks = read_chunks(Corpus("c", path, None), skip_invalid=options.get("skip_invalid", False))
    return b"".join(chunk.source for chunk in chunks)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "CHUNK_BYTES", 4_000)
    monkeypatch.setattr(corpus_module, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(corpus_module, "MAX_LINE_BYTES", 3_000)


@pytest.mark.parametrize("name", PACKERS)
def test_every_packing_gives_the_same_text(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(PACKERS[name](TEXT))
    assert read_source(path) == TEXT


@pytest.mark.parametrize("name", ["packed.gz", "packed.xz", "packed.zst"])
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_damaged_archive_is_named(tmp_path: Path, name: str, damage: str):
    path = tmp_path / name
    packed = PACKERS[name](TEXT)
    path.write_bytes(packed[: len(packed) // 2] if damage == "cut" else b"no archive at all" * 9)
    with pytest.raises(DragomanError, match=f"{name} is damaged or cut off"):
        read_source(path)


def test_zstd_of_several_frames(tmp_path: Path):
    path = tmp_path / "two.zst"
    path.write_bytes(zstandard.compress(b"one\n") + zstandard.compress(b"two\n"))
    assert read_source(path) == b"one\ntwo\n"


@pytest.mark.usefixtures("small_chunks")
def test_chunks_stay_aligned_when_one_side_is_longer(tmp_path: Path):
    left, right = tmp_path / "a", tmp_path / "b"
    left.write_bytes("".join(f"{number}\n" for number in range(3_000)).encode())
    right.write_bytes("".join(f"{number} {'x' * 50}\n" for number in range(3_000)).encode())
    chunks = list(read_chunks(Corpus("c", left, right), skip_invalid=False))
    assert len(chunks) > 10
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    expected_line = 1
    for chunk in chunks:
        sources, targets = chunk.source.splitlines(), chunk.target.splitlines()
        assert chunk.first_line == expected_line
        assert len(sources) == len(targets) == chunk.num_lines
        assert all(target.startswith(source + b" ") for source, target in zip(sources, targets, strict=True))
        expected_line += chunk.num_lines
    assert expected_line == 3_001


@pytest.mark.usefixtures("small_chunks")
def test_different_line_counts_name_both(tmp_path: Path):
    left, right = tmp_path / "a.en", tmp_path / "a.de"
    left.write_bytes(b"word word word\n" * 4_321)
    right.write_bytes(b"Wort\n" * 1_234)
    with pytest.raises(DragomanError, match=r"a\.en has 4,321.*a\.de has 1,234"):
        list(read_chunks(Corpus("c", left, right), skip_invalid=False))


def test_last_line_without_newline_and_byte_order_mark(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\ntwo")
    assert read_source(path) == b"one\ntwo\n"


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("line_bytes", [3_500, 50_000])
def test_too_long_line_is_named_or_skipped(tmp_path: Path, line_bytes: int):
    path = tmp_path / "a"
    path.write_bytes(b"short\n" * 700 + b"x" * line_bytes + b"\nlast\n")
    with pytest.raises(DragomanError, match=r"a line 701 is longer than 3,000 bytes"):
        read_source(path)
    assert read_source(path, skip_invalid=True) == b"short\n" * 700 + corpus_module.INVALID_LINE + b"\nlast\n"


def test_missing_and_empty_files(tmp_path: Path):
    empty = tmp_path / "empty.en"
    empty.touch()
    with pytest.raises(DragomanError, match=r"no file .*missing\.en"):
        check_inputs([Corpus("c", tmp_path / "missing.en", empty)])
    with pytest.raises(DragomanError, match=r"empty\.en is empty"):
        check_inputs([Corpus("c", empty, empty)])
