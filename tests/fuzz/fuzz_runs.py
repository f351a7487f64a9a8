"""Gives damaged inputs to a reader and holds it to its promises: one line or an answer, nothing written, in bounds.

    python fuzz_runs.py READER NUM_INPUTS [FIRST_SEED]

in a process of its own, where native code that dies takes no test with it. Prints a Tally as one JSON line.
"""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

from damage import damage_file, remove
from fuzz_readers import READERS, Reader

from dragoman.errors import DragomanError

ROOM_BYTES = 1 << 30  # more than the damaged files could ever need, less than what they claim
MAX_SECONDS = 20.0  # of one input; what takes longer hangs
STATM = Path("/proc/self/statm")
Tree = dict[str, tuple[int, int, bytes]]


@dataclass
class Tally:
    """What became of a reader's inputs."""

    reader: str
    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    seconds: float = 0.0


class BrokenPromiseError(AssertionError):
    """A promise that a reader did not keep; says how to see it again."""


def run_reader(name: str, num_inputs: int, first_seed: int = 0, seed_file: Path | None = None) -> Tally:
    """Damage after damage; the first that is not met with one line or an answer is an error that names its seed."""
    reader, tally, start = READERS[name], Tally(name), time.perf_counter()
    with tempfile.TemporaryDirectory() as parent, warnings.catch_warnings():
        valid, tried = Path(parent) / "valid", Path(parent) / "tried"
        reader.make(valid)
        shutil.copytree(valid, tried, symlinks=True)
        reader.read(tried)  # what is whole must be readable, or nothing below means anything
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's word on numbers that overflow; the answer stands
        for seed in range(first_seed, first_seed + num_inputs):
            if seed_file is not None:
                seed_file.write_text(str(seed))
            is_accepted = _try(reader, valid, tried, seed)
            tally.inputs += 1
            tally.accepted += is_accepted
            tally.refused += not is_accepted
    tally.seconds = round(time.perf_counter() - start, 1)
    return tally


def run_apart(name: str, num_inputs: int, first_seed: int = 0) -> Tally:
    """The same in a process of its own: a crash becomes an error that names the seed."""
    with tempfile.TemporaryDirectory() as folder:
        seed_file = Path(folder) / "seed"
        command = [sys.executable, __file__, name, str(num_inputs), str(first_seed), str(seed_file)]
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]  # where helpers of all tests lie
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            seed = seed_file.read_text() if seed_file.exists() else "none yet"
            words = done.stderr[-4_000:]
            raise BrokenPromiseError(f"reader {name}, seed {seed}: the process ended with {done.returncode}\n{words}")
    return Tally(**json.loads(done.stdout.splitlines()[-1]))


def num_inputs(name: str, default: int) -> int:
    """How many a test tries: DRAGOMAN_FUZZ_INPUTS, or what takes a few seconds."""
    wanted = os.environ.get("DRAGOMAN_FUZZ_INPUTS")
    return default if wanted is None else fair_share(name, int(wanted))


def fair_share(name: str, num_wanted: int) -> int:
    """Of so many inputs for every reader, those of this one."""
    return max(1, round(num_wanted * READERS[name].share))


def _try(reader: Reader, valid: Path, tried: Path, seed: int) -> bool:
    draw = random.Random(f"{reader.name} {seed}")
    names = reader.files(valid)
    name = draw.choice(names)
    damage_file(tried / name, draw)
    before, start = _tree(tried), time.perf_counter()
    try:
        with _limited_memory(), contextlib.redirect_stdout(io.StringIO()):
            is_accepted = _accepts(reader, tried)
        if _tree(tried) != before:
            raise BrokenPromiseError("reading changed the folder")
        if time.perf_counter() - start > MAX_SECONDS:
            raise BrokenPromiseError(f"it took {time.perf_counter() - start:.0f} s")
    except Exception as error:
        problem = "".join(traceback.format_exception(error))
        raise BrokenPromiseError(f"reader {reader.name}, seed {seed}, file {name}: {problem}") from None
    _restore(valid, tried, name)
    return is_accepted


def _accepts(reader: Reader, tried: Path) -> bool:
    try:
        reader.read(tried)
    except DragomanError as error:
        if "\n" in error.message or "\n" in error.hint or not error.message:
            raise BrokenPromiseError(f"the message is not one line: {error.message!r}, {error.hint!r}") from None
        error.message.encode()  # what a terminal could not show would be a traceback after all
        return False
    return True


def _tree(folder: Path) -> Tree:
    """Name -> size, time of the last change and content, of everything in it."""
    found: Tree = {}
    for entry in sorted(folder.rglob("*")):
        status = entry.lstat()
        content = entry.read_bytes() if entry.is_file() and not entry.is_symlink() else b""
        found[str(entry.relative_to(folder))] = (status.st_size, status.st_mtime_ns, content)
    return found


def _restore(valid: Path, tried: Path, name: str) -> None:
    remove(tried / name)
    shutil.copyfile(valid / name, tried / name)


@contextlib.contextmanager
def _limited_memory() -> Generator[None]:
    """Whoever asks for what a header claims gets a MemoryError, which is no DragomanError."""
    if not STATM.exists():  # no Linux
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(STATM.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    chosen, number, first, *rest = [*sys.argv[1:], *(["0"] if len(sys.argv) == 3 else [])]
    print(json.dumps(asdict(run_reader(chosen, int(number), int(first), Path(rest[0]) if rest else None))))
