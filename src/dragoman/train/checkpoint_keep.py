"""Which checkpoints stay on a disk, and whether the next one fits."""

import shutil
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.run.folder import POINTERS, RunFolder
from dragoman.train.checkpoint_write import MAKE_ROOM
from dragoman.train.progress import Progress
from dragoman.units import format_bytes

GIGABYTE = 10**9
MOST_NEEDED = 4


def keep_checkpoints(folder: RunFolder, num_last: int, progress: Progress) -> None:
    """Point at the best, keep them and the newest, remove the rest. What lies ahead is not there yet: it stays until
    its step is done again."""
    steps = [step for step in folder.step_checkpoints() if step <= progress.step]
    if progress.best_loss_step in steps:
        folder.set_pointer("best-loss", progress.best_loss_step)
    if progress.best_bleu_step in steps:
        folder.set_pointer("best-bleu", progress.best_bleu_step)
    for step in steps[:-num_last]:
        if step not in (progress.best_loss_step, progress.best_bleu_step):
            shutil.rmtree(folder.step_checkpoint(step), ignore_errors=True)


def check_budget(new_bytes: int, max_bytes: float) -> None:
    """The last, the best by loss, the best by BLEU and one that is being written must fit at the same time."""
    if MOST_NEEDED * new_bytes > max_bytes:
        raise DragomanError(
            f"checkpoint.max_gigabytes = {max_bytes / GIGABYTE:g}, and one checkpoint has {format_bytes(new_bytes)}",
            f"room for {MOST_NEEDED} is needed: the last, the two best, and the next while it is written",
        )


def make_room(folder: RunFolder, new_bytes: int, max_bytes: float) -> None:
    """Within the budget, oldest out first; what a pointer leads to stays. Nothing is begun that cannot fit."""
    pointed = {folder.pointed_step(name) for name in POINTERS}
    sizes = {step: _bytes_of(folder.step_checkpoint(step)) for step in folder.step_checkpoints()}
    new_bytes = max(new_bytes, *list(sizes.values())[-1:], 0)  # the newest has texts, too
    for step in sorted(sizes.keys() - pointed):
        if sum(sizes.values()) + new_bytes > max_bytes:
            shutil.rmtree(folder.step_checkpoint(step), ignore_errors=True)
            del sizes[step]
    free = shutil.disk_usage(folder.checkpoints_path).free
    if new_bytes > free:
        raise DragomanError(
            f"cannot write the checkpoint to {folder.checkpoints_path}: No space left on device for "
            f"{format_bytes(new_bytes)} ({format_bytes(free)} are free)",
            MAKE_ROOM,
        )


def _bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())
