"""Files through ssh, either way: a tar stream between two Pythons, each file under a temporary name until it is whole.

Both sides are here; on the host it is `python -m dragoman.launch.copying.transfer send|receive FOLDER`. Knows files
and bytes, not what they are for.
"""

import hashlib
import json
import os
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from dragoman.errors import DragomanError
from dragoman.launch.hosts.facts import absolute_path
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.ssh import (
    END_SECONDS,
    Tail,
    end_ssh,
    explain_failure,
    python_command,
    start_ssh,
)
from dragoman.launch.json_lines import json_object

BLOCK_BYTES = 1 << 20
STALL_SECONDS = 90.0  # without a single byte; a slow disk may need a while to take what was sent
HELLO = b"dragoman sends"  # whatever a login shell prints comes before it
_MODULE = ("-m", "dragoman.launch.copying.transfer")

Advance = Callable[[int], None]
Hashes = dict[str, str]  # name -> sha256, or `-> TARGET` of a symbolic link
Listing = Mapping[str, tuple[int, str]]  # name -> bytes, and as in Hashes


def send_files(host: Host, root: Path, names: Iterable[str], folder: str, advance: Advance) -> Hashes:
    """Copy files below `root` into a folder of the host, made if it is missing; what arrived."""
    with _Connection(host, [*_MODULE, "receive", folder]) as connection:
        sent = connection.write_tar(root, names, advance)
        arrived = connection.answer()
    wrong = [name for name in sent if arrived.get(name) != sent[name]]
    if wrong:
        raise DragomanError(f"{host.name}: {wrong[0]} arrived with other bytes", "give the same command again")
    return sent


def receive_files(host: Host, folder: str, wanted: Listing, root: Path, advance: Advance) -> Hashes:
    """Copy files of a host's folder below `root`; what arrived as wanted, which may be less than was asked for.

    A file that has grown since it was listed arrives as it was then.
    """
    with _Connection(host, [*_MODULE, "send", folder]) as connection:
        return connection.read_tar(root, wanted, advance)


class _Connection:
    """One ssh call that carries a tar stream. It is ended when no byte moves for a while."""

    def __init__(self, host: Host, arguments: Sequence[str]) -> None:
        self._host = host
        self._last_beat = time.monotonic()
        self._has_stalled = False
        self._done = threading.Event()
        try:
            self._process = start_ssh(host, python_command(host, arguments))
        except DragomanError as error:
            raise DragomanError(f"{host.name}: {error.message}", error.hint) from None
        self._complaints = Tail(self._process)

    def __enter__(self) -> "_Connection":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        end_ssh(self._process)

    def write_tar(self, root: Path, names: Iterable[str], advance: Advance) -> Hashes:
        stdin = cast("IO[bytes]", self._process.stdin)
        try:
            sent = write_tar(_Counted(stdin, self._beat(advance)), root, names)
            stdin.close()
        except OSError as error:
            with suppress(OSError):  # or the other side may go on waiting for more
                stdin.close()
            self.answer()  # the other side may have said why it left
            raise self._failure(error) from None
        return sent

    def answer(self) -> Hashes:
        """What the other side says when it has everything: its last line, whatever a logout prints after it."""
        lines = cast("IO[bytes]", self._process.stdout).read().splitlines()
        answer = next((values for line in reversed(lines) if (values := json_object(line)) is not None), {})
        if "message" in answer:
            raise DragomanError(f"{self._host.name}: {answer['message']}", answer["hint"])
        if "files" not in answer:
            raise self._failure(None)
        return answer["files"]

    def read_tar(self, root: Path, wanted: Listing, advance: Advance) -> Hashes:
        stdin, stdout = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        try:
            sizes = {name: num_bytes for name, (num_bytes, _) in wanted.items()}
            stdin.write(json.dumps(sizes).encode() + b"\n")
            stdin.close()
            while (line := stdout.readline()).strip() != HELLO:
                if not line:
                    raise self._failure(None)
            return read_tar(_Counted(stdout, self._beat(advance)), root, wanted)
        except (OSError, tarfile.TarError) as error:
            raise self._failure(error) from None

    def _beat(self, advance: Advance) -> Advance:
        def beat(num_bytes: int) -> None:
            self._last_beat = time.monotonic()
            advance(num_bytes)

        return beat

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            if time.monotonic() - self._last_beat > STALL_SECONDS:
                self._has_stalled = True
                self._process.kill()
                return

    def _failure(self, error: Exception | None) -> DragomanError:
        name = self._host.name
        if self._has_stalled:
            hint = "look at its network and disk, then give the same command again"
            return DragomanError(f"{name}: no byte moved for {STALL_SECONDS:.0f} s", hint)
        with suppress(Exception):
            self._process.wait(END_SECONDS)
        code = self._process.poll()
        if code:
            explained = explain_failure(self._host, code, self._complaints.text())
            return DragomanError(f"{name}: {explained.message}", explained.hint)
        return DragomanError(f"{name}: the transfer broke off ({error})", "give the same command again")


class _Counted:
    """A stream that says how many bytes went through it."""

    def __init__(self, stream: IO[bytes], advance: Advance) -> None:
        self._stream = stream
        self._advance = advance

    def write(self, data: bytes) -> int:
        self._stream.write(data)
        self._advance(len(data))
        return len(data)

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._advance(len(data))
        return data


def write_tar(stream: Any, root: Path, names: Iterable[str], sizes: Mapping[str, int] | None = None) -> Hashes:
    """Files as long as they are now, or were when listed: what grows is sent up to there. One that vanished is not."""
    sent: Hashes = {}
    with tarfile.open(fileobj=stream, mode="w|", bufsize=BLOCK_BYTES, format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            path = safe_path(root, name)
            with reading(path), suppress(FileNotFoundError):
                added = _add(tar, path, name, (sizes or {}).get(name))
                sent |= {} if added is None else {name: added}
    return sent


def _add(tar: tarfile.TarFile, path: Path, name: str, max_bytes: int | None) -> str | None:
    """Write one file or link; as in Hashes, or None for what is neither."""
    info = tar.gettarinfo(path, name)
    if info.issym():
        tar.addfile(info)
        return f"-> {info.linkname}"
    if info.type not in (tarfile.REGTYPE, tarfile.LNKTYPE):
        return None
    with path.open("rb") as file:
        # Of the second name of a file tarfile only says what the first one was: here every name carries the bytes.
        num_bytes = os.fstat(file.fileno()).st_size
        info.type, info.linkname = tarfile.REGTYPE, ""
        info.size = num_bytes if max_bytes is None else min(max_bytes, num_bytes)
        hashed = _Hashed(file)
        tar.addfile(info, cast("Any", hashed))
        return hashed.hexdigest()


@contextmanager
def reading(path: Path) -> Generator[None]:
    """What goes wrong while a file of this machine is read is the file's, unless it is the connection's."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        problem = f"cannot read {path}: {error.strerror or error}"
        raise DragomanError(problem, "mend that file, then give the same command again") from None


def read_tar(stream: Any, root: Path, wanted: Listing | None = None) -> Hashes:
    """Write what comes; a file has its final name only when it is whole, as wanted, and on the disk."""
    arrived: Hashes = {}
    with tarfile.open(fileobj=stream, mode="r|", bufsize=BLOCK_BYTES) as tar:
        for info in tar:
            path = safe_path(root, info.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if info.issym():
                place_link(path, info.linkname)
                arrived[info.name] = f"-> {info.linkname}"
            elif info.isreg():
                expected = None if wanted is None else wanted[info.name][1]
                sha256 = place_file(path, cast("IO[bytes]", tar.extractfile(info)), expected)
                if sha256 is not None:
                    arrived[info.name] = sha256
    return arrived


def place_file(path: Path, source: IO[bytes], expected: str | None) -> str | None:
    """The bytes of a stream under this name, all at once; their sha256, or None where another one was expected."""
    fresh = path.with_name(f".{path.name}.part")
    digest = hashlib.sha256()
    with fresh.open("wb") as file:
        while block := source.read(BLOCK_BYTES):
            file.write(block)
            digest.update(block)
        file.flush()
        os.fsync(file.fileno())
    if expected is not None and digest.hexdigest() != expected:
        fresh.unlink()
        return None
    fresh.replace(path)
    return digest.hexdigest()


def place_link(path: Path, target: str) -> None:
    """A link to a neighbour, as the pointers among checkpoints are; others are refused."""
    if "/" in target or target in ("", ".", ".."):
        raise DragomanError(f"{path.name} leads out of its folder, to {target}", "copy such a link by hand")
    fresh = path.with_name(f".{path.name}.part")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(path)


def safe_path(root: Path, name: str) -> Path:
    """Below the root, whatever the other side says."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise DragomanError(f"{name!r} does not lie in its folder", "do not copy from a machine you do not trust")
    return root / parts


class _Hashed:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def main(verb: str, folder: str) -> None:
    """The side on the host: a tar stream in or out, by the standard streams."""
    with suppress(OSError, RuntimeError):
        os.chdir(Path.home())
    root = absolute_path(folder)
    out = sys.stdout.buffer
    if verb == "send":
        sizes = json.loads(sys.stdin.buffer.readline())
        out.write(HELLO + b"\n")
        try:
            write_tar(out, root, sizes, sizes)
        except DragomanError as error:
            sys.exit(error.message)  # the last line of stderr is what the near side tells
    else:
        out.write(json.dumps(_received(root)).encode() + b"\n")
    out.flush()


def _received(root: Path) -> dict[str, Any]:
    try:
        return {"files": read_tar(sys.stdin.buffer, root)}
    except DragomanError as error:
        return {"message": error.message, "hint": error.hint}
    except OSError as error:
        return {"message": f"cannot write to {root}: {error.strerror or error}", "hint": "make room on that disk"}
    except tarfile.TarError:
        return {"message": "the transfer broke off", "hint": "give the same command again"}


if __name__ == "__main__":
    main(*sys.argv[1:])
