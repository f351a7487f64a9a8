"""Copies a data folder to hosts that lack it, under a temporary name until its hashes agree.

`push_data_folder` is the near side, `adopt_data` runs on the host.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.data.manifest import MANIFEST_NAME, Manifest, read_manifest
from dragoman.data.shards import PARTS, VOCAB_NAME, ShardSet, eval_paths, shard_path
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256
from dragoman.launch.copying.bars import Bars
from dragoman.launch.copying.transfer import Advance, send_files
from dragoman.launch.hosts.facts import absolute_path
from dragoman.launch.hosts.session import HostSession, problem_line, side_by_side
from dragoman.units import format_bytes

ADOPT_SECONDS = 1800.0  # to hash what may be many gigabytes on a slow disk


def data_files(folder: Path, manifest: Manifest) -> dict[Path, str]:
    """Every file of a data folder with its sha256, but the manifest, which holds them."""
    files = {folder / VOCAB_NAME: manifest.vocab.sha256}
    for info in manifest.shards:
        for part in PARTS:
            files[shard_path(folder / "train", info.name, part)] = getattr(info, f"{part}_sha256")
    for kind, entries in (("dev", manifest.dev), ("test", manifest.test)):
        for entry in entries:
            hashes = (entry.source_sha256, entry.target_sha256)
            files.update(zip(eval_paths(folder / kind, entry.name), hashes, strict=True))
    return files


def push_data_folder(sessions: Sequence[HostSession], data: ShardSet, path: str, say: Callable[[str], None]) -> None:
    """Bring the data to these hosts, side by side, with a bar for each; all failures become one error."""
    if not sessions:
        return
    files = [*data_files(data.folder, data.manifest), data.folder / MANIFEST_NAME]
    names = [file.relative_to(data.folder).as_posix() for file in files]
    num_bytes = sum(file.stat().st_size for file in files)
    start = time.monotonic()
    with Bars() as bars:
        pushes = [
            lambda session=session: _push(session, data, names, path, bars.add(session.host.name, num_bytes))
            for session in sessions
        ]
        errors = [answer for answer in side_by_side(pushes) if isinstance(answer, DragomanError)]
    if errors:
        lines = "\n  ".join(["the data could not be copied", *(problem_line(error) for error in errors)])
        raise DragomanError(lines, "mend this and give the same command again")
    rate = num_bytes / max(1e-3, time.monotonic() - start)
    hosts = ", ".join(session.host.name for session in sessions)
    say(f"data copied to {hosts}: {format_bytes(num_bytes)} each, {format_bytes(rate)}/s, hashes verified")


def _push(session: HostSession, data: ShardSet, names: Sequence[str], path: str, advance: Advance) -> None:
    incoming = session.call("prepare_data", path=path, num_bytes=sum((data.folder / n).stat().st_size for n in names))
    send_files(session.host, data.folder, names, incoming, advance)
    fingerprint = data.manifest.fingerprint
    session.call("adopt_data", timeout_seconds=ADOPT_SECONDS, path=path, fingerprint=fingerprint)


def prepare_data(path: str, num_bytes: int) -> str:
    """On the host: the temporary folder to send to, if what is there may be replaced and the rest fits."""
    final = absolute_path(path)
    if final.exists() and not (final / MANIFEST_NAME).is_file() and (not final.is_dir() or any(final.iterdir())):
        raise DragomanError(f"{final} is there and is no data folder", "name another folder with --data")
    incoming = _incoming(final)
    shutil.rmtree(incoming, ignore_errors=True)
    try:
        incoming.mkdir(parents=True)
    except OSError as error:
        problem = f"cannot write to {final.parent}: {error.strerror}"
        raise DragomanError(problem, "name another folder with --data") from None
    free = shutil.disk_usage(incoming).free
    if free < num_bytes:
        incoming.rmdir()
        problem = f"has {format_bytes(free)} free for {final}, the data needs {format_bytes(num_bytes)}"
        raise DragomanError(problem, "make room, or name another disk with --data")
    return str(incoming)


def adopt_data(path: str, fingerprint: str) -> None:
    """On the host: verify every hash, then give the folder its name. What was there before goes."""
    final = absolute_path(path)
    incoming = _incoming(final)
    manifest = read_manifest(incoming)
    for file, sha256 in data_files(incoming, manifest).items():
        if not file.is_file() or file_sha256(file) != sha256:
            raise DragomanError(f"{file.name} arrived with other bytes than its manifest says", "prepare the data anew")
    if manifest.fingerprint != fingerprint:
        raise DragomanError(f"another command sends other data to {final} at the same time", "let it end first")
    replaced = final.with_name(f".{final.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if final.exists():
        final.rename(replaced)
    incoming.rename(final)
    shutil.rmtree(replaced, ignore_errors=True)


def _incoming(final: Path) -> Path:
    return final.with_name(f".{final.name}.incoming")


PUSH_OPS: Mapping[str, Callable[..., Any]] = {"prepare_data": prepare_data, "adopt_data": adopt_data}
