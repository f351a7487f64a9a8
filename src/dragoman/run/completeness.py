"""Is a run folder whole? What its records and checkpoints promise and do not hold, as sentences. Reads only."""

from pathlib import Path

from dragoman.containment import is_inside
from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import find_damage, rank_file
from dragoman.run.folder import POINTERS, RunFolder
from dragoman.run.reader import RunRecord, list_checkpoints, read_manifest, read_run


def find_gaps(path: Path) -> list[str]:
    """One sentence for everything that is missing or damaged; none if the run is whole."""
    try:
        run = read_run(path)
    except DragomanError as error:
        return [error.message]
    return [*_missing_records(run), *_damaged_checkpoints(run.folder), *_loose_pointers(run.folder)]


def find_left_out(path: Path) -> list[str]:
    """What stays on the disks of other hosts by design: the own state of their ranks. A run goes on without it."""
    folder = RunFolder(path)
    last = folder.pointed_step("last")
    if last is None:
        return []
    checkpoint = folder.step_checkpoint(last)
    world_size = read_manifest(folder).world_size
    here = [rank for rank in range(world_size) if (checkpoint / rank_file(rank)).exists()]
    if not here or len(here) == world_size:
        return []
    others = ", ".join(str(rank) for rank in range(world_size) if rank not in here)
    return [
        f"the exchange state of rank {others} in {checkpoint.name} is on their hosts only; without it, it starts anew"
    ]


def _missing_records(run: RunRecord) -> list[str]:
    """Every rank of the latest attempt that made a step must have timed its last one."""
    if not run.steps:
        return []
    last = run.steps[-1]
    sizes = {entry.attempt: entry.world_size for entry in run.manifest.attempts}
    ends = dict.fromkeys(range(sizes.get(last.attempt, run.manifest.world_size)), 0)
    for record in run.timings:
        if record.attempt == last.attempt and record.rank in ends:
            ends[record.rank] = max(ends[record.rank], record.step)
    return [
        f"the records of rank {rank} end at step {end:,}, the run at {last.step:,}: not gathered"
        for rank, end in ends.items()
        if end < last.step
    ]


def _damaged_checkpoints(folder: RunFolder) -> list[str]:
    problems = [(found.name, find_damage(found.path)) for found in list_checkpoints(folder)]
    return [f"checkpoint {name} is damaged: {problem}" for name, problem in problems if problem is not None]


def _loose_pointers(folder: RunFolder) -> list[str]:
    links = [folder.checkpoints_path / name for name in POINTERS]
    return [
        f"checkpoints/{link.name} leads to {link.readlink()}, which is not here"
        for link in links
        if link.is_symlink() and not (link.exists() and is_inside(link.parent, link.name))
    ]
