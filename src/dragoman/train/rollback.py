"""What a run does when step after step gives no number: back to its last good checkpoint once, and then it is over."""

from dragoman.train.checkpoint import Checkpoints
from dragoman.train.numbers import Streak
from dragoman.train.progress import Progress
from dragoman.train.recorder import Recorder
from dragoman.train.stop import DIVERGED
from dragoman.units import plural

HALF = 0.5
TRY = "try a lower optim.learning_rate, a longer optim.warmup_steps or optim.max_norm = 1"


def roll_back(streak: Streak, progress: Progress, checkpoints: Checkpoints, recorder: Recorder) -> str | None:
    """All ranks together. The reason to end, or None where the run can go on, with less of its learning rate."""
    first, last = streak.first_step, progress.step
    what = f"{plural(streak.num_steps, 'step')} in a row gave no number, the first at step {first:,}"
    recorder.checkpoint(checkpoints.finish())
    earlier, notes = checkpoints.roll_back(first)
    for note in notes:
        recorder.warn(last, note)
    if earlier is None or progress.rate_factor < 1:
        why = "there is no checkpoint from before" if earlier is None else "going back to a checkpoint had not helped"
        recorder.warn(last, f"{what}, and {why}: the run diverged; {TRY}")
        return DIVERGED
    progress.roll_back(earlier, rate_factor=HALF)
    streak.restart(progress.step)
    text = f"{what}: back to the checkpoint of step {progress.step:,}, and on with half the learning rate"
    recorder.rolled_back(progress.step, text, from_step=last, first_left_out=first, rate_factor=HALF)
    return None
