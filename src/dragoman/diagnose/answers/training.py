"""Questions 2 and 3: is the model fully trained, and was it overfitting. Decided on curves with their noise."""

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Confidence, Number, not_recorded
from dragoman.diagnose.learning import Learning
from dragoman.diagnose.statistics import Estimate
from dragoman.diagnose.wording import percent
from dragoman.units import plural

NO_EVALS = "No evaluation is recorded, and the training loss alone cannot say what the model does with new text."
EVALUATE = "Evaluations on a dev set: `dragoman train` makes them every evaluate.every_steps steps of the recipe."
SMALL_GAIN = 0.01  # nats per token: about one percent of perplexity
FOOTING = "Both are measured alike, without dropout and label smoothing; the training loss of a step is not."


def answer_trained(facts: Facts) -> Answer:
    """2. From the last third of the evaluations, and what another 50 % of steps would probably bring."""
    learning = facts.learning
    last = learning.last
    if last is None:
        return _without_evals(2, facts)
    told = [_changes(learning), _forecast(learning), _circumstances(facts)]
    return Answer(
        number=2,
        question=QUESTIONS[1],
        verdict=trained_verdict(facts),
        sentences=" ".join(part for part in told if part),
        numbers=tuple(_trained_numbers(learning)),
        chart="dev-loss",
        evidence=f"{plural(len(learning.evals), 'evaluation')} on {last.dev_set}; {_how(learning)}",
        confidence=_confidence(learning),
        missing="" if last.bleu is not None else "BLEU: set evaluate.decode = true for `dragoman train`.",
    )


def trained_verdict(facts: Facts) -> str:
    learning = facts.learning
    if learning.blowup is not None and learning.blowup.is_lasting:
        return f"No: it diverged at step {learning.blowup.step:,}."
    if learning.overfitting == "yes" and learning.best is not None:
        if learning.is_bleu_rising:
            return f"By dev loss it is past its best at step {learning.evals[learning.best].step:,}, by BLEU not yet."
        return f"Yes, and past its best at step {learning.evals[learning.best].step:,}."
    if len(learning.evals) < 3:
        return f"Too early to say: {plural(len(learning.evals), 'evaluation')}."
    if not (learning.is_still_falling or learning.is_bleu_rising):
        return "Yes." if len(learning.evals) >= 5 else "Probably."
    gain = learning.loss_gain
    if gain is None or gain.value >= SMALL_GAIN or (learning.bleu_gain and learning.bleu_gain.value >= 0.5):
        return "No."
    return "Nearly."


def answer_overfitting(facts: Facts) -> Answer:
    """3. A lasting rise of the dev loss beyond chance while the loss on training pairs falls; one point is none."""
    learning = facts.learning
    last, best = learning.last, learning.best
    if last is None or best is None:
        return _without_evals(3, facts)
    verdicts = {
        "yes": f"Yes, from about step {learning.evals[best].step:,}.",
        "unclear": "Perhaps: the dev loss rises.",
        "one higher point": "Too early to say.",
        "rise without learning": "No, but the dev loss rises.",
        "diverged": "No: it diverged.",
        "no": "No sign of it." if len(learning.evals) >= 3 else "No sign of it, in too few evaluations.",
    }
    has_train = last.train_loss is not None
    told = [_from_best(learning), _gap(learning)]
    if learning.overfitting == "one higher point":
        told.append("One higher point is not overfitting: it takes a rise that lasts.")
    elif learning.overfitting == "rise without learning":
        told.append("The loss on training pairs does not fall meanwhile, so the model is not learning them by heart.")
    elif has_train:
        told.append(FOOTING)
    confidence: Confidence = "high" if learning.is_paired and has_train and len(learning.evals) >= 5 else "medium"
    return Answer(
        number=3,
        question=QUESTIONS[2],
        verdict=verdicts[learning.overfitting],
        sentences=" ".join(part for part in told if part),
        numbers=tuple(_overfitting_numbers(learning)),
        chart="dev-loss",
        evidence=f"{plural(len(learning.evals), 'evaluation')} on {last.dev_set}; {_how(learning)}",
        confidence=confidence if len(learning.evals) >= 3 else "low",
        missing="" if has_train else "The loss on training pairs, measured alike: evaluate.train_pairs of the recipe.",
    )


def _without_evals(number: int, facts: Facts) -> Answer:
    blowup = facts.learning.blowup
    if blowup is None or not blowup.is_lasting or number != 2:
        return not_recorded(number, NO_EVALS, EVALUATE)
    return Answer(
        number=2,
        question=QUESTIONS[1],
        verdict=f"No: it diverged at step {blowup.step:,}.",
        sentences="The training loss blew up before the first evaluation. What follows a blow-up is not training.",
        chart="dev-loss",
        evidence="The losses in steps.jsonl.",
        missing=EVALUATE,
    )


def _changes(learning: Learning) -> str:
    change, last = learning.loss_change, learning.last
    assert last is not None
    loss = f"{last.loss:.3f} nats per token"
    if change is None or learning.reference is None:
        return f"There is one evaluation, with a dev loss of {loss}; a trend takes three."
    since = learning.evals[learning.reference].step
    moved = "did not change beyond chance" if not _is_clear(change) else "fell" if change.value < 0 else "rose"
    text = f"From step {since:,} to {last.step:,} the dev loss, measured on text the model never trained on, {moved}"
    text += (
        f" by {_size(change, 3)} to {loss}" if _is_clear(change) else f" ({_signed(change, 3)}) and stands at {loss}"
    )
    bleu = learning.bleu_change
    if bleu is None or last.bleu is None:
        return text + "."
    if not _is_clear(bleu):
        return f"{text}; BLEU stands at {last.bleu:.1f}, no clear change ({_signed(bleu, 1)} points)."
    return f"{text}; BLEU {'rose' if bleu.value > 0 else 'fell'} by {_size(bleu, 1)} points to {last.bleu:.1f}."


def _forecast(learning: Learning) -> str:
    gain = learning.loss_gain
    if learning.overfitting in ("yes", "diverged"):
        return f"More such steps would not help: step {learning.evals[learning.best or 0].step:,} is the one to use."
    if gain is not None and gain.value < 0.0005:
        return f"If the curve goes on as it did, 50 % more steps bring nothing, {gain.high:.3f} nats at most."
    if gain is None:
        return "" if len(learning.evals) < 3 else "A forecast takes four evaluations."
    text = f"If the curve goes on as it did, 50 % more steps bring about {gain.value:.3f} nats less"
    text += f" ({gain.low:.3f} to {gain.high:.3f})"
    bleu = learning.bleu_gain
    if bleu is not None and bleu.value >= 0.05:
        text += f" and {bleu.value:.1f} BLEU more ({bleu.low:.1f} to {bleu.high:.1f})"
    return text + "."


def _circumstances(facts: Facts) -> str:
    """Steps, passes and the learning rate: context, and said to be no verdict."""
    if not facts.num_steps:
        return ""
    share = _rate_share(facts)
    planned = f" of {facts.max_steps:,} planned" if facts.max_steps else ""
    passes = epochs_of(facts)
    seen = f", {passes:.3g} passes over the data" if passes else ""
    text = f"The run did {facts.last_step:,}{planned} steps{seen}"
    if share is None or facts.learning.overfitting in ("yes", "diverged"):
        return text + "."
    if share < 0.05:
        return (
            f"{text}, and its learning rate ended at {percent(share)} of its peak: a flat end is the schedule's doing "
            "too, and more steps need a longer schedule."
        )
    return f"{text}, and the learning rate stood at {percent(share)} of its peak; that alone is no verdict."


def epochs_of(facts: Facts) -> float | None:
    num_pairs = facts.run.manifest.data.num_pairs
    return float(np.nansum(facts.steps.num_sentences)) / num_pairs if num_pairs > 0 and facts.num_steps else None


def _rate_share(facts: Facts) -> float | None:
    rates = facts.steps.learning_rate[np.isfinite(facts.steps.learning_rate)]
    return float(rates[-1] / rates.max()) if len(rates) and rates.max() > 0 else None


def _from_best(learning: Learning) -> str:
    last, best = learning.last, learning.evals[learning.best or 0]
    assert last is not None
    num_later = len(learning.evals) - 1 - (learning.best or 0)
    if num_later == 0:
        if len(learning.evals) == 1:
            return f"There is one evaluation, with a dev loss of {last.loss:.3f} nats per token."
        return f"Of {len(learning.evals)} evaluations the last has the lowest dev loss, {last.loss:.3f} nats per token."
    change = learning.loss_change_from_best
    text = f"The dev loss was lowest at step {best.step:,} ({best.loss:.3f} nats per token)"
    if change is None:
        return text + "."
    if not change.is_above_zero:
        return f"{text}; what it is above that at the end ({_signed(change, 3)}) may be chance."
    return f"{text} and lies {_size(change, 3)} above that {plural(num_later, 'evaluation')} later, beyond chance."


def _gap(learning: Learning) -> str:
    last, best = learning.last, learning.evals[learning.best or 0]
    assert last is not None
    if last.train_loss is None:
        return "The loss on training pairs was not measured, so a gap between the two cannot be judged."
    text = f"On training pairs the loss is {last.train_loss:.3f} at the end"
    if best is not last and best.train_loss is not None:
        text += f", against {best.train_loss:.3f} at step {best.step:,}"
    first = next((item for item in learning.evals if item.train_loss is not None), last)
    if first is not last and first.train_loss is not None:
        before, after = first.loss - first.train_loss, last.loss - last.train_loss
        text += f"; the dev loss lies {_above(after)} it, and lay {_above(before)} it at step {first.step:,}"
    return f"{text}."


def _above(gap: float) -> str:
    return f"{abs(gap):.3f} {'above' if gap >= 0 else 'below'}"


def _trained_numbers(learning: Learning) -> list[Number]:
    last = learning.last
    assert last is not None
    numbers = [Number("Evaluations", f"{len(learning.evals)}"), Number("Dev loss", f"{last.loss:.3f} nats per token")]
    if last.bleu is not None:
        numbers.append(Number("BLEU", f"{last.bleu:.1f} on {last.num_decoded:,} sentences"))
    if learning.loss_change is not None:
        numbers.append(Number("Dev loss over the last third", f"{_signed(learning.loss_change, 3)} nats"))
    if learning.bleu_change is not None:
        numbers.append(Number("BLEU over the last third", f"{_signed(learning.bleu_change, 1)} points"))
    if learning.loss_gain is not None:
        gain = learning.loss_gain
        numbers.append(Number("50 % more steps", f"-{gain.value:.3f} nats ({gain.low:.3f} to {gain.high:.3f})"))
    return numbers


def _overfitting_numbers(learning: Learning) -> list[Number]:
    last, best = learning.last, learning.evals[learning.best or 0]
    assert last is not None
    numbers = [
        Number("Lowest dev loss", f"{best.loss:.3f} nats per token at step {best.step:,}"),
        Number("Last dev loss", f"{last.loss:.3f} nats per token"),
    ]
    if last.train_loss is not None:
        numbers.append(Number("Last loss on training pairs", f"{last.train_loss:.3f} nats per token"))
    if learning.loss_change_from_best is not None:
        numbers.append(Number("Last above lowest", f"{_signed(learning.loss_change_from_best, 3)} nats"))
    return numbers


def _how(learning: Learning) -> str:
    if learning.is_paired:
        return "changes and 95 % intervals by a paired bootstrap over the sentences of the dev set."
    return "changes between points of the curve, their intervals from its own noise: the sentences were not kept."


def _confidence(learning: Learning) -> Confidence:
    if len(learning.evals) < 3:
        return "low"
    return "high" if learning.is_paired and len(learning.evals) >= 5 else "medium"


def _is_clear(change: Estimate) -> bool:
    return change.is_above_zero or change.is_below_zero


def _size(change: Estimate, digits: int) -> str:
    """'0.037 (0.032 to 0.043)', without a sign: the verb has it."""
    low, high = sorted((abs(change.low), abs(change.high)))
    return f"{abs(change.value):.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f})"


def _signed(change: Estimate, digits: int) -> str:
    return f"{change.value:+.{digits}f}, interval {change.low:+.{digits}f} to {change.high:+.{digits}f}"
