"""Files through ssh: what cannot be read, what has two names, and what a login shell says in between."""

import io
import os
import time
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.copying import transfer
from dragoman.launch.copying.transfer import read_tar, send_files, write_tar
from dragoman.launch.hosts.hosts import Host
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Files to send to host a."""
    stand_in_hosts(tmp_path, monkeypatch, "a")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "x").write_bytes(b"some bytes")
    return folder


def send(root: Path, *names: str):
    return send_files(Host("a", "a"), root, names, "there", lambda _: None)


def test_a_file_that_cannot_be_read_is_named_at_once(root):
    start = time.monotonic()
    with pytest.raises(DragomanError, match=f"cannot read {root}/x/y: Not a directory"):
        send(root, "x", "x/y")
    assert time.monotonic() - start < 20


def test_every_name_of_a_file_carries_its_bytes(root, tmp_path):
    os.link(root / "x", root / "y")
    sent = send(root, "x", "y")
    assert sent["x"] == sent["y"]
    assert (tmp_path / "a" / "there" / "y").read_bytes() == b"some bytes"


def test_a_file_that_vanishes_between_two_looks_is_left_out(root, tmp_path, monkeypatch):
    real = transfer.tarfile.TarFile.gettarinfo

    def vanish(tar, path, name):
        info = real(tar, path, name)
        path.unlink()
        return info

    monkeypatch.setattr(transfer.tarfile.TarFile, "gettarinfo", vanish)
    stream = io.BytesIO()
    assert write_tar(stream, root, ["x"]) == {}
    stream.seek(0)
    assert read_tar(stream, tmp_path / "home") == {}


@pytest.mark.parametrize(("printed", "is_answer"), [("Bye\n5\n[]", True), ("Welcome\n5", False)])
def test_what_a_login_shell_prints_is_no_answer(root, tmp_path, monkeypatch, printed, is_answer):
    client = tmp_path / "client.sh"
    real = f'{os.environ["DRAGOMAN_SSH"]} "$@"' if is_answer else "cat > /dev/null"
    client.write_text(f"{real}\nprintf '{printed}\\n'\n")
    monkeypatch.setenv("DRAGOMAN_SSH", f"sh {client}")
    if is_answer:
        assert send(root, "x").keys() == {"x"}
    else:
        with pytest.raises(DragomanError, match="a: the transfer broke off"):
            send(root, "x")
