"""What a run does when step after step gives no number: back to its last good checkpoint once, and then it is over."""

from dragoman.train.checkpoint import Checkpoints
from dragoman.train.numbers import Streak
from dragoman.train.progress import Progress
from dragoman.train.recorder import Recorder
from dragoman.train.stop import DIVERGED
from dragoman.units import plural

RATE_FACTOR = 0.5
TRY = "try a lower optim.learning_rate, a longer optim.warmup_steps or optim.max_norm = 1"


def roll_back(streak: Streak, progress: Progress, checkpoints: Checkpoints, recorder: Recorder) -> str | None:
    """All ranks together. The reason to end, or None where the run can go on, with less of its learning rate."""
    first, last = streak.first_step, progress.step
    what = f"{plural(streak.num_steps, 'step')} in a row gave no number, the first at step {first:,}"
    if progress.rate_factor < 1:
        recorder.warn(last, f"{what}, and the run had gone back to a checkpoint before: it diverged; {TRY}")
        return DIVERGED
    recorder.checkpoint(checkpoints.finish())
    earlier, notes = checkpoints.roll_back(first)
    for note in notes:
        recorder.warn(last, note)
    if earlier is None:
        recorder.warn(last, f"{what}, and there is no checkpoint to go back to: the run diverged; {TRY}")
        return DIVERGED
    progress.roll_back(earlier, RATE_FACTOR)
    streak.restart(progress.step)
    text = f"{what}: back to the checkpoint of step {progress.step:,}, and on with {RATE_FACTOR:g} of the learning rate"
    recorder.rolled_back(progress.step, text, from_step=last, first_left_out=first, rate_factor=RATE_FACTOR)
    return None
