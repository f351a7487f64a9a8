"""A small run of two ranks on hosts a and b, written as a run writes it, without training anything."""

import json
from pathlib import Path

from dragoman.hashing import file_sha256
from dragoman.run.checkpoint_files import STATE, WEIGHTS, state_digest
from dragoman.run.control import Control, write_control
from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.records import Attempt, DataSummary, Manifest, SideSize, StepRecord, TimingRecord, to_line
from dragoman.run.writer import append_lines, write_manifest

NUM_STEPS = 20


def write_sample_run(path: Path, num_steps: int = NUM_STEPS, created: float = 1000.0) -> RunFolder:
    folder = create_run_folder(path)
    data = DataSummary("data", "f00d", "en-de", 3, SideSize("en"), SideSize("de"))
    attempts = (Attempt(1, created, "dragoman train", 2),)
    write_manifest(folder, Manifest("trial", created, {}, "h", {}, 2, "cpu", "fp32", 9, data, attempts=attempts))
    write_steps(folder, 1, num_steps)
    write_checkpoint(folder, num_steps)
    folder.set_pointer("last", num_steps)
    write_control_of_two(folder)
    return folder


def write_control_of_two(folder: RunFolder) -> None:
    members = tuple({"name": name, "address": f"10.0.0.{number}"} for number, name in enumerate("ab", start=1))
    write_control(folder, Control("ended", 1, 1, 0.0, "a", "10.0.0.1", 1, members, exit_code=0))


def write_steps(folder: RunFolder, first: int, last: int, ranks: tuple[int, ...] = (0, 1)) -> None:
    for step in range(first, last + 1):
        record = StepRecord(1, 1000.0 + step, step, 2.0, 2.0, 1e-3, 0.5, 90, 100, 4, 0.5)
        append_lines(folder.steps_path, [to_line(record)])
        for rank in ranks:
            timing = TimingRecord(1, 1000.0 + step, step, rank, "ab"[rank], *[0.1] * 8, 0.8)
            append_lines(folder.timing_path(rank), [to_line(timing)])


def write_checkpoint(folder: RunFolder, step: int, num_bytes: int = 100_000) -> Path:
    path = folder.step_checkpoint(step)
    path.mkdir()
    (path / WEIGHTS).write_bytes(bytes([step % 256]) * num_bytes)
    state = {"step": step, "files": {WEIGHTS: {"bytes": num_bytes, "sha256": file_sha256(path / WEIGHTS)}}}
    (path / STATE).write_text(json.dumps({**state, "sha256": state_digest(state)}))
    return path


def files_of(path: Path) -> dict[str, bytes | str]:
    """Name -> bytes, or where a link leads; what begins with a dot is left out."""
    found: dict[str, bytes | str] = {}
    for entry in sorted(path.rglob("*")):
        name = entry.relative_to(path)
        if not any(part.startswith(".") for part in name.parts):
            if entry.is_symlink():
                found[name.as_posix()] = f"-> {entry.readlink()}"
            elif entry.is_file():
                found[name.as_posix()] = entry.read_bytes()
    return found
