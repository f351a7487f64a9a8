"""Where a mirror writes: a folder behind ssh, or whatever fsspec knows by its URL. Each name appears only when whole.

The far side of ssh needs nothing but a shell and tar: a copy may lie on a machine without Dragoman.
"""

import shlex
import subprocess
import tarfile
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, cast

from dragoman.errors import DragomanError
from dragoman.launch.copying.transfer import place_link
from dragoman.launch.hosts.hosts import Host, read_remote
from dragoman.launch.hosts.ssh import SSH_FAILED, Tail, end_ssh, explain_failure, start_ssh
from dragoman.run.checkpoint_files import STATE
from dragoman.run.notices import without_password

COMMAND_SECONDS = 60.0
WRITABLE = "name a place that can be written, with --mirror HOST:PATH or a URL such as s3://bucket/run"
INCOMING = ".incoming"
WHOLE = ".whole"  # sent last: tar is content with a stream that ends between two files
BATCH_FILES = 200  # a command line has a limit
# Where a rename is one act. Elsewhere (object stores) a file appears only when it is whole anyway.
RENAMING = {"file", "local", "sftp", "ssh"}


class Target(Protocol):
    """A place for files, links and whole folders, by names relative to it."""

    @property
    def name(self) -> str: ...
    def check(self) -> None: ...
    def put_files(self, root: Path, names: Sequence[str]) -> None: ...
    def put_folder(self, root: Path, name: str, files: Sequence[str]) -> None: ...
    def put_link(self, name: str, to: str) -> None: ...
    def remove(self, name: str) -> None: ...


def open_target(destination: str) -> Target:
    """`host:path`, or a URL, or a path of this machine."""
    remote = None if "://" in destination else read_remote(destination)
    return SshTarget(*remote) if remote else UrlTarget(destination)


class SshTarget:
    """A folder on a host; every act is one ssh call."""

    def __init__(self, host: Host, path: str) -> None:
        self._host = host
        # Quoted, a leading ~ would be an ordinary letter; a relative path begins at the login folder anyway.
        self._root = PurePosixPath(path.removeprefix("~/"))
        self.name = f"{host.name}:{path}"

    def check(self) -> None:
        mark = self._place(f".check-{uuid.uuid4().hex}")
        self._run(f"mkdir -p {self._place('')} && : > {mark} && rm {mark} && command -v tar > /dev/null")

    def put_files(self, root: Path, names: Sequence[str]) -> None:
        for first in range(0, len(names), BATCH_FILES):
            batch = names[first : first + BATCH_FILES]
            renames = [f"mv -f {self._fresh(name)} {self._place(name)}" for name in batch]
            self._put(root, batch, [_parent(name) for name in batch], renames)

    def put_folder(self, root: Path, name: str, files: Sequence[str]) -> None:
        renames = [f"rm -rf {self._place(name)}", f"mv {self._fresh(name)} {self._place(name)}"]
        self._put(root, [f"{name}/{file}" for file in files], [_parent(name)], renames)

    def put_link(self, name: str, to: str) -> None:
        # -n: an old link that leads to a folder is replaced, not followed.
        self._run(f"mkdir -p {self._place(_parent(name))} && ln -sfn {shlex.quote(to)} {self._place(name)}")

    def remove(self, name: str) -> None:
        self._run(f"rm -rf {self._place(name)}")

    def _put(self, root: Path, names: Sequence[str], parents: Sequence[str], renames: Sequence[str]) -> None:
        """Unpack into a folder of its own, then rename: only whole files have their names."""
        incoming = self._place(INCOMING)
        folders = " ".join([incoming, *(self._place(parent) for parent in dict.fromkeys(parents))])
        whole = f"{{ test -e {self._fresh(WHOLE)} || {{ echo 'the transfer broke off' >&2; false; }}; }}"
        unpack = [f"rm -rf {incoming}", f"mkdir -p {folders}", f"tar -xf - -C {incoming}", whole]
        with _client(self._host, " && ".join([*unpack, *renames, f"rm -rf {incoming}"])) as process:
            stdin = cast("IO[bytes]", process.stdin)
            # What the other side has to say about a broken pipe is told by its exit code and its last line.
            with suppress(BrokenPipeError), tarfile.open(fileobj=stdin, mode="w|", bufsize=1 << 20) as tar:
                for name in names:
                    _add(tar, root / name, name)
                tar.addfile(tarfile.TarInfo(WHOLE))

    def _run(self, script: str) -> None:
        with _client(self._host, script):
            pass

    def _place(self, name: str) -> str:
        return shlex.quote(str(self._root / name))

    def _fresh(self, name: str) -> str:
        return self._place(f"{INCOMING}/{name}")


def _parent(name: str) -> str:
    return str(PurePosixPath(name).parent)


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """A file that grows is sent as long as it is now; its owner and its rights are a matter of this machine."""
    info = tarfile.TarInfo(name)
    with path.open("rb") as file:
        stat = path.stat()
        info.size, info.mtime = stat.st_size, int(stat.st_mtime)
        tar.addfile(info, file)


@contextmanager
def _client(host: Host, script: str) -> Generator[subprocess.Popen[bytes]]:
    """One ssh call, whose input ends with the block; then it must end well."""
    process = start_ssh(host, f"exec sh -c {shlex.quote(script)}")
    complaints = Tail(process)
    try:
        yield process
        with suppress(BrokenPipeError):
            cast("IO[bytes]", process.stdin).close()
        code = process.wait(COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        raise DragomanError(f"{host.name} does not take the files", "look at its disk") from None
    finally:
        end_ssh(process)
    if code == SSH_FAILED:
        error = explain_failure(host, code, complaints.text())
        raise DragomanError(f"{host.name}: {error.message}", error.hint)
    if code:
        last = (complaints.text().strip().splitlines() or [f"exit code {code}"])[-1]
        raise DragomanError(f"{host.name}: {last}", WRITABLE)


class UrlTarget:
    """Whatever fsspec reaches. Only the disks of this machine have links: elsewhere pointers are left out."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._files, self._root = _open_url(url)
        protocol: Any = self._files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._renames = bool(protocols & RENAMING)
        self._is_local = "file" in protocols

    def check(self) -> None:
        mark = self._place(f".check-{uuid.uuid4().hex}")
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(mark, b"")
            self._files.rm_file(mark)
        except Exception as error:  # every backend has its own
            raise DragomanError(without_password(f"cannot write to {self.name}: {error}"), WRITABLE) from None

    def put_files(self, root: Path, names: Sequence[str]) -> None:
        for name in names:
            self._put_file(self._place(name), root / name)

    def put_folder(self, root: Path, name: str, files: Sequence[str]) -> None:
        """The state, which holds the checksums, last: without it a checkpoint does not count."""
        for file in sorted(files, key=lambda file: file == STATE):
            self._put_file(self._place(f"{name}/{file}"), root / name / file)

    def put_link(self, name: str, to: str) -> None:
        if self._is_local:
            place_link(Path(self._place(name)), to)

    def remove(self, name: str) -> None:
        place = self._place(name)
        if self._files.lexists(place):
            self._files.rm(place, recursive=True)

    def _put_file(self, final: str, path: Path) -> None:
        folder, _, last = final.rpartition("/")
        self._files.makedirs(folder, exist_ok=True)
        fresh = f"{folder}/.{last}.part" if self._renames else final
        self._files.put_file(str(path), fresh)
        if self._renames:
            self._files.mv(fresh, final)

    def _place(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


def _open_url(url: str) -> tuple[Any, str]:
    core: Any = import_module("fsspec.core")  # not at the top: half of the commands never mirror
    try:
        return core.url_to_fs(url)
    except ImportError as error:
        hint = "install that package beside Dragoman, on the first host"
        raise DragomanError(without_password(f"--mirror {url}: {error}"), hint) from None
    except ValueError as error:
        raise DragomanError(without_password(f"--mirror {url}: {error}"), WRITABLE) from None
