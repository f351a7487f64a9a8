"""Findings on learning: overfitting, a plateau, the learning rate, gradients, a bad resume."""

import numpy as np

from dragoman.diagnose.facts import MIN_STEPS, Facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.remedies import worth_of
from dragoman.diagnose.statistics import Floats, block_medians, robust_spread
from dragoman.diagnose.wording import percent, times_text
from dragoman.units import plural

# Peaks near 1 x d_model^-0.5 x 4000^-0.5 train Transformers of this kind; far from it is where trouble starts.
USUAL_WARMUP = 4_000
FAR_ABOVE, FAR_BELOW = 15.0, 0.1
PLATEAU_EVALS = 6
LOST_SHARE = 0.2


def overfitting(facts: Facts) -> Finding | None:
    learning = facts.learning
    change, last = learning.loss_change_from_best, learning.last
    if learning.overfitting != "yes" or learning.best is None or change is None or last is None:
        return None
    best = learning.evals[learning.best]
    later = facts.last_step - best.step
    seconds = later * (facts.mean_step_seconds or 0.0)
    return Finding(
        "overfitting",
        "The model is learning its training pairs by heart",
        "problem",
        f"Since step {best.step:,} the dev loss rose from {best.loss:.3f} to {last.loss:.3f} nats per token, by "
        f"{change.value:.3f} (interval {change.low:.3f} to {change.high:.3f}), while the loss on training pairs fell "
        f"from {best.train_loss or 0:.3f} to {last.train_loss or 0:.3f}.",
        f"Ship the checkpoint of step {best.step:,} (best-loss), and next time stop there (train.patience), use more "
        "data, more dropout or a smaller model.",
        f"{plural(later, 'step')} less: {worth_of(facts, seconds)}." if seconds > 0 else "",
        best.step,
    )


def plateau(facts: Facts) -> Finding | None:
    learning = facts.learning
    change, last = learning.loss_change, learning.last
    if len(learning.evals) < PLATEAU_EVALS or change is None or learning.reference is None or last is None:
        return None
    is_flat = not learning.is_still_falling and abs(change.value) < 0.01 * max(last.loss, 0.1)
    if learning.overfitting == "yes" or learning.is_bleu_rising or not is_flat or learning.blowup is not None:
        return None
    since = learning.evals[learning.reference].step
    seconds = (facts.last_step - since) * (facts.mean_step_seconds or 0.0)
    return Finding(
        "plateau",
        "The last third of the run taught the model nothing",
        "note",
        f"From step {since:,} to {last.step:,} the dev loss changed by {change.value:+.4f} nats per token (interval "
        f"{change.low:+.4f} to {change.high:+.4f}), and BLEU did not rise.",
        "Stop earlier (train.patience); to get further, use more data, a larger model or another schedule.",
        f"{worth_of(facts, seconds)} of training." if seconds > 0 else "",
        since,
    )


def rate_too_high(facts: Facts) -> Finding | None:
    blowup, peak, usual = facts.learning.blowup, _peak_rate(facts), _usual_rate(facts)
    if not facts.is_enough or peak is None or usual is None:
        return None
    is_far = peak > FAR_ABOVE * usual
    medians, _ = block_medians(facts.steps.nll)
    finite = medians[np.isfinite(medians)]
    is_stuck = len(finite) > 1 and finite[-1] > 0.6 * float(np.nanmax(facts.steps.nll[:3], initial=finite[0]))
    if not (blowup is not None and blowup.is_lasting) and not (is_far and is_stuck):
        return None
    if not is_far and not _is_near_peak(facts, blowup.step if blowup else 0, peak):
        return None
    return Finding(
        "rate-too-high",
        "The learning rate is too high",
        "problem",
        f"The rate went up to {peak:.1e}, {times_text(peak / usual)} what models of this width are usually trained with"
        f" ({usual:.1e}), and the loss {'blew up' if blowup else 'did not come down'}.",
        f"Set optim.learning_rate to {_suggested(facts, peak, usual):.2g}, or lengthen optim.warmup_steps.",
    )


def rate_too_low(facts: Facts) -> Finding | None:
    peak, usual, optim = _peak_rate(facts), _usual_rate(facts), facts.optim
    if len(facts.steps) < 100 or peak is None or usual is None or optim is None or facts.learning.blowup is not None:
        return None
    reached = facts.last_step / optim.warmup_steps
    is_all_warmup = facts.is_finished and facts.max_steps == facts.last_step and reached < 0.5
    medians, _ = block_medians(facts.steps.nll)
    fall = float(medians[0] - medians[-1]) if np.isfinite(medians[[0, -1]]).all() else 0.0
    is_slow = fall < 0.4 * float(facts.steps.nll[0]) if np.isfinite(facts.steps.nll[0]) else False
    if not is_slow or not (is_all_warmup or peak < FAR_BELOW * usual):
        return None
    if is_all_warmup:
        evidence = f"The run ended after {percent(reached)} of its warm-up of {optim.warmup_steps:,} steps"
        advice = f"Set optim.warmup_steps to about a tenth of the run, {max(1, facts.last_step // 10):,} steps."
    else:
        evidence = f"The rate never passed {peak:.1e}, {percent(peak / usual)} of what models of this width usually get"
        advice = f"Set optim.learning_rate to {_suggested(facts, peak, usual):.2g}."
    return Finding(
        "rate-too-low",
        "The learning rate is too low",
        "warning",
        f"{evidence}, and the loss came down by {fall:.2f} nats per token only.",
        advice,
    )


def gradient_exploding(facts: Facts) -> Finding | None:
    norms = facts.steps.gradient_norm
    if len(norms) < MIN_STEPS:
        return None
    medians, starts = block_medians(norms)
    num_infinite = int((~np.isfinite(norms)).sum())
    finite = medians[np.isfinite(medians)]
    lowest = float(finite.min()) if len(finite) else 0.0
    is_growing = len(finite) >= 4 and lowest > 0 and bool(np.all(finite[-2:] > 10 * lowest))
    if not is_growing and num_infinite < max(2, 0.005 * len(norms)):
        return None
    if num_infinite:
        first = int(np.argmax(~np.isfinite(norms)))
        evidence = f"{plural(num_infinite, 'step')} had a gradient norm that is no number"
    else:
        first = int(starts[int(np.argmax(medians > 10 * lowest))])
        evidence = f"The gradient norm rose to {finite[-1]:.3g}, from {lowest:.3g} at its lowest"
    return Finding(
        "gradient-exploding",
        "Gradients are exploding",
        "problem",
        f"{evidence}.",
        "Clip them (optim.max_norm = 1), lower optim.learning_rate, or look for damaged sentences in the data.",
        since_step=int(facts.steps.step[first]),
    )


def resumed_badly(facts: Facts) -> Finding | None:
    jump = _resume_jump(facts)
    if jump is not None:
        step, before, after = jump
        return Finding(
            "resumed-badly",
            "The loss jumped when the run was resumed",
            "problem",
            f"Around step {step:,}, where an attempt began, the training loss rose from {before:.2f} to {after:.2f} "
            "nats per token.",
            "Resume with the same recipe, data and number of ranks; a checkpoint without its optimizer or rank files "
            "costs such a jump.",
            since_step=step,
        )
    lost, seconds = len(facts.run.lost_steps), sum(span.lost_seconds for span in facts.spans)
    if not facts.is_enough or lost < MIN_STEPS or lost < LOST_SHARE * (facts.num_steps + lost):
        return None
    return Finding(
        "resumed-badly",
        "Much work was lost between attempts",
        "warning",
        f"{plural(lost, 'step')} ({percent(lost / (facts.num_steps + lost))} of all) had to be done again.",
        "Save more often: lower checkpoint.every_steps or checkpoint.every_minutes.",
        f"Up to {worth_of(facts, seconds)}.",
    )


def _resume_jump(facts: Facts) -> tuple[int, float, float] | None:
    """(step, loss before, loss after) of the first attempt that begins far above where the one before ended."""
    steps = facts.steps
    for index in np.flatnonzero(np.diff(steps.attempt)) + 1:
        before, after = steps.nll[max(0, index - 30) : index], steps.nll[index : index + 30]
        if min(np.isfinite(before).sum(), np.isfinite(after).sum()) < MIN_STEPS:
            continue
        low, high = float(np.nanmedian(before)), float(np.nanmedian(after))
        noise = max(robust_spread(before), robust_spread(after))
        if high - low > max(0.3, 0.1 * low, 3 * noise):
            return int(steps.step[index]), low, high
    return None


def _peak_rate(facts: Facts) -> float | None:
    rates: Floats = facts.steps.learning_rate[np.isfinite(facts.steps.learning_rate)]
    return float(rates.max()) if len(rates) and rates.max() > 0 else None


def _usual_rate(facts: Facts) -> float | None:
    return (facts.model.d_model * USUAL_WARMUP) ** -0.5 if facts.model is not None else None


def _is_near_peak(facts: Facts, step: int, peak: float) -> bool:
    """Whether the rate stood above half of its peak when the trouble began."""
    at = facts.steps.learning_rate[np.searchsorted(facts.steps.step, step).clip(0, len(facts.steps) - 1)]
    return bool(at > 0.5 * peak)


def _suggested(facts: Facts, peak: float, usual: float) -> float:
    """The recipe's own setting, scaled: to the usual peak where it is far from that, else by a third."""
    setting = facts.optim.learning_rate if facts.optim is not None else peak
    is_far = peak > FAR_ABOVE * usual or peak < FAR_BELOW * usual
    return setting * (usual / peak if is_far else 1 / 3)
