"""The records of a run on another host, copied for a command that only reads them: no weights, no event files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.launch.hosts.hosts import Host


@contextmanager
def records_of(run: str, hosts: str | None) -> Iterator[tuple[Path, bool]]:
    """(a folder to read, whether it is the run itself): that of another host is a copy of its records, for a while."""
    remote = None
    if ":" in run:
        from dragoman.launch.hosts.hosts import read_remote

        remote = read_remote(run, hosts)
    if remote is None:
        yield Path(run), True
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-") as scratch:
        yield copy_records(*remote, Path(scratch)), False


def copy_records(host: "Host", path: str, into: Path) -> Path:
    """A folder below `into`, named like the run, with all of it that a reader of records needs."""
    from dragoman.launch.copying.bars import Bars
    from dragoman.launch.copying.fetching import LIST_SECONDS
    from dragoman.launch.copying.transfer import receive_files
    from dragoman.launch.hosts.session import HostSession

    with HostSession(host) as session:
        found = session.call("list_run", timeout_seconds=LIST_SECONDS, path=path, records_only=True)
    wanted = {name: (num_bytes, sha256) for name, num_bytes, sha256 in found["files"]}
    folder = into / Path(found["path"]).name
    folder.mkdir()
    with Bars() as bars:
        advance = bars.add(host.name, sum(num_bytes for num_bytes, _ in wanted.values()))
        receive_files(host, found["path"], wanted, folder, advance)
    return folder
