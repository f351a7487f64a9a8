"""`--fork`: a new run that begins where another one was, with its optimizer and its step. No torch."""

import json
import shutil
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import OPTIMIZER, STATE, find_damage, rank_file, temporary
from dragoman.run.folder import RunFolder

NAME_ONE = "name a run folder or one of its checkpoints"


def find_fork(source: str, new: RunFolder) -> Path:
    """The checkpoint that SOURCE names, whole; of a run, its last. A new run that has begun already goes by its own:
    the same command goes on, whatever became of the source."""
    own = new.pointed_step("last") if new.manifest_path.exists() else None
    if own is not None:
        return new.step_checkpoint(own)
    path = Path(source)
    if not (path / STATE).is_file():
        step = RunFolder(path).pointed_step("last")
        if step is None:
            raise DragomanError(f"{path} has no checkpoint to fork from", NAME_ONE)
        path = RunFolder(path).step_checkpoint(step)
    path = path.resolve()
    problem = find_damage(path)
    if problem is not None:
        raise DragomanError(f"checkpoint {path} is damaged: {problem}", "`dragoman checkpoints RUN` shows the others")
    if not (path / OPTIMIZER).is_file() and not (path / rank_file(0)).is_file():
        raise DragomanError(f"{path} has no optimizer to go on with", "--init takes its weights alone")
    return path


def copy_fork(source: Path, folder: RunFolder) -> None:
    """Make it the new run's first checkpoint."""
    step = int(json.loads((source / STATE).read_text(encoding="utf-8"))["step"])
    final = folder.step_checkpoint(step)
    fresh = temporary(final, "fork")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(source, fresh)
        shutil.rmtree(final, ignore_errors=True)  # of a start that was killed right here
        fresh.rename(final)
        folder.set_pointer("last", step)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise DragomanError(f"cannot copy {source} to {final}: {error.strerror or error}", "make room there") from None
