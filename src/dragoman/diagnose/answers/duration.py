"""Questions 1 and 10: how long the run took, and a step of it; and that the two agree."""

from dataclasses import dataclass

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Number, not_recorded
from dragoman.diagnose.wording import at_rate, joined, money, percent, seconds_text
from dragoman.units import format_seconds, plural

NO_STEPS = (
    "No step is in the records, so there is nothing to time. The run has just begun, or ended before its first step."
)
RUN_IT = "The steps: `dragoman train` writes them to steps.jsonl."


@dataclass(frozen=True)
class Account:
    """The working time of a run, part by part, in seconds."""

    duration: float
    steps: float
    validation: float
    checkpoints: float
    start: float  # from the start of an attempt to its first step
    lost: float  # steps that a later attempt did again
    gaps: float  # between attempts; not in the duration

    @property
    def rest(self) -> float:
        return self.duration - self.steps - self.validation - self.checkpoints - self.start - self.lost


def account_of(facts: Facts) -> Account:
    validation, checkpoints = 0.0, 0.0
    if facts.split is not None:
        validation, checkpoints = facts.split.validation_seconds, facts.split.checkpoint_seconds
    if validation == 0:
        validation = sum(record.loss_seconds + record.decode_seconds for record in facts.run.evals)
    gaps = [max(0.0, later.start - earlier.end) for earlier, later in zip(facts.spans, facts.spans[1:], strict=False)]
    return Account(
        duration=facts.duration_seconds,
        steps=float(np.nansum(facts.steps.seconds)),
        validation=_number(validation),
        checkpoints=_number(checkpoints),
        start=_start_seconds(facts),
        lost=_number(sum(span.lost_seconds for span in facts.spans)),
        gaps=_number(sum(gaps)),
    )


def answer_duration(facts: Facts) -> Answer:
    """1. Working time over all attempts, and what it was spent on."""
    account = account_of(facts)
    mean = facts.mean_step_seconds
    if not facts.num_steps or mean is None or account.duration <= 0:
        return not_recorded(1, NO_STEPS, RUN_IT)
    told = [_made_of(facts, account, mean), _agreement(account)]
    if len(facts.spans) > 1:
        told.append(
            f"It took {len(facts.spans)} attempts; the {format_seconds(account.gaps)} between them are not counted, "
            "though rented machines cost money then too."
        )
    cost = facts.price_per_second * account.duration if facts.price_per_second else None
    if cost is not None and facts.run.manifest.price_per_hour:
        price = money(facts.run.manifest.price_per_hour, facts.currency)
        told.append(f"At {price} an hour for all machines that is {money(cost, facts.currency)}.")
    elif not any(span.ending != "cut off" for span in facts.spans[-1:]):
        told.append("No end is recorded: the run goes on, or it was cut off.")
    numbers = [
        Number("Duration", format_seconds(account.duration)),
        Number("Steps", f"{facts.num_steps:,}"),
        Number("Mean step", at_rate(mean)),
        Number("Training", _with_share(account.steps, account.duration)),
        Number("Validation", _with_share(account.validation, account.duration)),
        Number("Checkpoints", _with_share(account.checkpoints, account.duration)),
        Number("Start", _with_share(account.start, account.duration)),
    ]
    if account.lost:
        numbers.append(Number("Done twice", _with_share(account.lost, account.duration)))
    if cost is not None:
        numbers.append(Number("Cost", money(cost, facts.currency)))
    return Answer(
        number=1,
        question=QUESTIONS[0],
        verdict=f"{format_seconds(account.duration)} for {plural(facts.num_steps, 'step')}.",
        sentences=" ".join(told),
        numbers=tuple(numbers),
        chart="time-bar",
        evidence="First and last record of each attempt in steps.jsonl, events.jsonl and evals.jsonl; "
        "the parts from the timing files.",
        confidence="high" if abs(account.rest) <= 0.05 * account.duration else "medium",
        missing="" if cost is not None else "The price: `dragoman train` takes price_per_hour from the hosts file.",
    )


def answer_step_time(facts: Facts) -> Answer:
    """10. Mean, median and spread of a step, with and without what is not training."""
    mean, seconds = facts.mean_step_seconds, facts.steps.seconds[np.isfinite(facts.steps.seconds)]
    if mean is None:
        return not_recorded(10, NO_STEPS, RUN_IT)
    account = account_of(facts)
    low, median, high = (float(value) for value in np.quantile(seconds, [0.1, 0.5, 0.9]))
    tokens, pairs = float(np.nanmean(facts.steps.target_tokens)), float(np.nanmean(facts.steps.num_sentences))
    whole = mean + (account.validation + account.checkpoints) / facts.num_steps
    ranks = "by one rank" if facts.num_ranks == 1 else f"from all {facts.num_ranks} ranks together"
    told = [
        f"A step is one update of the weights {ranks}: on average {tokens:,.0f} target tokens of {pairs:,.0f} pairs.",
        f"The median is {seconds_text(median)}, and 8 of 10 steps took {seconds_text(low)} to {seconds_text(high)}.",
        f"With evaluations and checkpoints shared out over the steps it is {at_rate(whole)}.",
        f"Check: {facts.num_steps:,} x {seconds_text(mean)} = {format_seconds(account.steps)} of the run's "
        f"{format_seconds(account.duration)}; {_difference(account)}.",
    ]
    return Answer(
        number=10,
        question=QUESTIONS[9],
        verdict=f"{seconds_text(mean)} ({1 / mean:.3g} steps/s), evaluations left out." if mean > 0 else "0 s.",
        sentences=" ".join(told),
        numbers=(
            Number("Mean", at_rate(mean)),
            Number("Median", at_rate(median)),
            Number("8 of 10 steps", f"{seconds_text(low)} to {seconds_text(high)}"),
            Number("With evaluations and checkpoints", at_rate(whole)),
            Number("Target tokens", f"{facts.target_tokens_per_second or 0:,.0f} tokens/s"),
        ),
        chart="step-times",
        evidence=f"step_seconds of {plural(len(seconds), 'step')} in steps.jsonl, which leave out validation and "
        "checkpoints; those come from the timing files.",
        confidence="high" if len(seconds) >= 20 else "low",
    )


def _made_of(facts: Facts, account: Account, mean: float) -> str:
    parts = [(account.validation, "validation"), (account.checkpoints, "checkpoints"), (account.start, "the start")]
    if account.lost:
        num_lost = len(facts.run.lost_steps)
        parts.append((account.lost, f"{plural(num_lost, 'step')} that {'were' if num_lost > 1 else 'was'} done again"))
    named = [
        f"{name} {seconds_text(value)} ({percent(value / account.duration)})" for value, name in parts if value > 0
    ]
    first = f"{plural(facts.num_steps, 'step')} of {seconds_text(mean)} on average make {format_seconds(account.steps)}"
    return f"{first}; {joined(named)} come on top." if named else f"{first}."


def _agreement(account: Account) -> str:
    """Whether steps, step time and duration agree, and what the difference is."""
    if account.rest < -0.02 * account.duration:
        return (
            f"The parts exceed the duration by {format_seconds(-account.rest)}: the records disagree, trust them less."
        )
    if account.rest > max(0.05 * account.duration, 2.0):
        return (
            f"{format_seconds(account.rest)} ({percent(account.rest / account.duration)}) are in no record: "
            "the time between the last record of a part and the next, or a pause of the machine."
        )
    return f"Together they account for {percent(min(1.0, 1 - account.rest / account.duration))} of the duration."


def _difference(account: Account) -> str:
    parts = [
        (account.validation, "evaluations"), (account.checkpoints, "checkpoints"), (account.start, "the start"),
        (account.lost, "steps done twice"), (account.rest, "time in no record"),
    ]  # fmt: skip
    named = [f"{name} ({seconds_text(value)})" for value, name in parts if value > 0.001 * max(account.duration, 1e-9)]
    return f"the rest is {joined(named)}" if named else "nothing else took time"


def _start_seconds(facts: Facts) -> float:
    total = 0.0
    steps = facts.steps
    for span in facts.spans:
        own = np.flatnonzero(steps.attempt == span.attempt)
        if len(own) and int(steps.step[own[0]]) == span.first_step:
            pause = _first_pause(facts, int(steps.step[own[0]]))
            total += max(0.0, float(steps.time[own[0]] - np.nan_to_num(steps.seconds[own[0]])) - pause - span.start)
    return _number(total)


def _first_pause(facts: Facts, step: int) -> float:
    """Validation and checkpoint inside a step's time: they lie before its record too."""
    if facts.grid is None:
        return 0.0
    row = np.flatnonzero(facts.grid.step == step)
    parts = facts.grid.parts
    return float(np.nansum(parts["validation"][row, :1]) + np.nansum(parts["checkpoint"][row, :1])) if len(row) else 0.0


def _with_share(seconds: float, whole: float) -> str:
    return f"{seconds_text(seconds)} ({percent(seconds / whole)})"


def _number(value: float) -> float:
    return value if np.isfinite(value) and value > 0 else 0.0
