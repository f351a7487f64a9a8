"""Question 6: the learning-rate curve is a formula of the step; stated here, and checked against the record."""

import numpy as np

from dragoman.config import OptimConfig
from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Number, not_recorded
from dragoman.diagnose.statistics import Floats
from dragoman.diagnose.wording import percent
from dragoman.plan.schedule import lr_at

MAX_CHECKED = 20_000
SAME = 1e-4  # relative: the records hold full precision
NAMES = {
    "transformer": "Warm-up, then inverse square root.",
    "cosine": "Warm-up, then half a cosine.",
    "linear": "Warm-up, then a straight line down.",
    "wsd": "Warm-up, level, then a straight line down.",
}


def answer_schedule(facts: Facts) -> Answer:
    """6. Formula with the recipe's numbers, the peak and its reason, and the check."""
    optim, rates = facts.optim, facts.steps.learning_rate
    if optim is None or facts.model is None or not np.isfinite(rates).any():
        return not_recorded(
            6,
            "The recipe's optimizer settings or the recorded rates are missing, so the curve has no formula to follow.",
            "Settings and rates: `dragoman train` writes them to manifest.json and steps.jsonl.",
        )
    max_steps = facts.max_steps or facts.last_step
    checked = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), MAX_CHECKED)).astype(np.int64))
    d_model = facts.model.d_model
    expected = np.array([lr_at(int(step), optim, d_model, max_steps) for step in facts.steps.step[checked]])
    deviation = _deviation(rates[checked], expected)
    peak = int(np.nanargmax(rates))
    told = [
        f"{_formula(optim, d_model, max_steps)}: {_course(facts, optim, peak)}.",
        f"{_check(facts, deviation, expected, checked)}; it depends on the step alone, not on loss, BLEU or data.",
        "The warm-up keeps the first updates small while Adam's averages of the gradient still rest on few steps.",
    ]
    if _is_diloco(facts):
        told.append("Between exchanges each replica multiplies this rate by a constant; the record is without it.")
    is_same = deviation <= SAME
    return Answer(
        number=6,
        question=QUESTIONS[5],
        verdict=NAMES[optim.schedule] if is_same else "Not quite what the recipe says.",
        sentences=" ".join(told),
        numbers=(
            Number("Peak", f"{rates[peak]:.2e} at step {int(facts.steps.step[peak]):,}"),
            Number("Warm-up", f"{optim.warmup_steps:,} steps"),
            Number("Last", f"{rates[-1]:.2e} at step {facts.last_step:,}"),
            Number("Largest deviation from the formula", percent(deviation) if not is_same else "none"),
        ),
        chart="learning-rate",
        evidence=f"learning_rate of {len(checked):,} steps in steps.jsonl against optim.schedule = {optim.schedule} "
        "of the recipe.",
    )


def _formula(optim: OptimConfig, d_model: int, max_steps: int) -> str:
    rate, warmup = f"{optim.learning_rate:g}", f"{optim.warmup_steps:,}"
    if optim.schedule == "transformer":
        return f"rate = {rate} x {d_model}^-0.5 x min(step^-0.5, step x {optim.warmup_steps}^-1.5)"
    end = f"{optim.learning_rate * optim.final_share:g} at step {max_steps:,}"
    rise = f"rate = {rate} x step / {warmup} up to step {warmup}"
    if optim.schedule == "cosine":
        return f"{rise}, then {rate} x (1 + cos(pi x progress)) / 2 down to {end}"
    if optim.schedule == "wsd":
        return f"{rise}, level until the last {percent(optim.decay_share)} of the run, then a line down to {end}"
    return f"{rise}, then a line down to {end}"


def _course(facts: Facts, optim: OptimConfig, peak: int) -> str:
    rates, steps = facts.steps.learning_rate, facts.steps.step
    top = f"{rates[peak]:.2e} at step {int(steps[peak]):,}"
    if facts.last_step == optim.warmup_steps:
        return f"linear up to {top}, the end of the warm-up and of the run"
    if facts.last_step < optim.warmup_steps:
        return (
            f"the run ended inside the warm-up of {optim.warmup_steps:,} steps, at {top}, so its peak was never reached"
        )
    return f"linear up to {top}, where optim.warmup_steps puts the peak, then down to {rates[-1]:.2e} at the last step"


def _check(
    facts: Facts, deviation: float, expected: Floats, checked: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> str:
    if deviation <= SAME:
        return "The recorded curve follows the formula at every step"
    rates = facts.steps.learning_rate[checked]
    is_off = ~(np.abs(rates - expected) <= SAME * np.maximum(expected, 1e-12))
    first = int(facts.steps.step[checked[int(np.argmax(is_off))]])
    why = ", as it does where an attempt was started with other settings" if len(facts.spans) > 1 else ""
    if facts.run.events_of("rolled-back"):
        why = ", because the run was rolled back and went on with less of its rate"
    return f"The recorded curve leaves the formula by up to {percent(deviation)}, first at step {first:,}{why}"


def _deviation(rates: Floats, expected: Floats) -> float:
    """Largest relative one; where the formula is near zero, relative to a thousandth of the peak."""
    if not len(rates):
        return 0.0
    scale = np.maximum(expected, 1e-3 * max(float(expected.max()), 1e-30))
    off = np.abs(rates - expected) / scale
    return float(np.max(np.where(np.isfinite(off), off, 1.0)))


def _is_diloco(facts: Facts) -> bool:
    exchange = facts.run.manifest.exchange
    return exchange is not None and exchange.settings.get("method") == "diloco"
