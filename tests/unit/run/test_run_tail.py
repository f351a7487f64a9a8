"""Reading on where one was: whole lines, each once."""

from dragoman.run.tail import Tail


def test_only_new_lines_come(tmp_path):
    path = tmp_path / "steps.jsonl"
    tail = Tail(path)
    assert tail.news() == [], "a missing file has none"
    path.write_bytes(b"one\ntwo\n")
    assert tail.news() == [b"one", b"two"]
    assert tail.news() == []
    with path.open("ab") as file:
        file.write(b"three\n")
    assert tail.news() == [b"three"]


def test_half_a_line_comes_whole_another_time(tmp_path):
    path = tmp_path / "steps.jsonl"
    tail = Tail(path)
    path.write_bytes(b"one\ntw")
    assert tail.news() == [b"one"]
    with path.open("ab") as file:
        file.write(b"o\n")
    assert tail.news() == [b"two"]


def test_a_file_that_was_replaced_is_read_from_its_start(tmp_path):
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b"one\ntwo\n")
    tail = Tail(path)
    tail.news()
    path.write_bytes(b"new\n")
    assert tail.news() == [b"new"]
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"another of more bytes\n")
    fresh.replace(path)
    assert tail.news() == [b"another of more bytes"]
    path.unlink()
    assert tail.news() == []


def test_a_long_file_may_be_taken_up_near_its_end(tmp_path):
    path = tmp_path / "timing.jsonl"
    path.write_bytes(b"".join(b"line %05d\n" % number for number in range(1000)))
    tail = Tail(path, last_bytes=50)
    assert tail.news() == [b"line %05d" % number for number in range(996, 1000)]
    with path.open("ab") as file:
        file.write(b"next\n")
    assert tail.news() == [b"next"]
