"""Questions 5 and 11: was the network the bottleneck, and how do bytes and seconds relate."""

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Confidence, Number, not_recorded
from dragoman.diagnose.link import BOUND, FELT, Link, is_bandwidth, step_seconds_at
from dragoman.diagnose.split import Split
from dragoman.diagnose.wording import at_rate, bits_text, percent, rate_text, seconds_text, times_text
from dragoman.units import format_bytes

TIMINGS = "How long each step waited for the exchange: `dragoman train` writes it to the timing files."
CAPACITY = "What the link carries: `dragoman doctor --hosts FILE` measures it, each way alone and both ways at once."


def answer_network(facts: Facts) -> Answer:
    """5. From the exposed transfer, not from the wait for the slowest rank, and from what the link can carry."""
    link, split = facts.link, facts.split
    if link is None:
        return _one_machine(facts)
    if split is None or not facts.num_steps:
        return not_recorded(5, f"The run had {link.num_hosts} hosts, but no rank recorded its waiting.", TIMINGS)
    told = [_where_it_went(split), _bytes(link), _faster(link, split), _oddity(link, split)]
    return Answer(
        number=5,
        question=QUESTIONS[4],
        verdict=network_verdict(link, split),
        sentences=" ".join(text for text in told if text),
        numbers=tuple(_network_numbers(link, split)),
        chart="link",
        evidence=_how_split(split) + _how_capacity(link),
        confidence=_confidence(link, split, facts.num_steps),
        missing=CAPACITY if not link.is_measured else "",
    )


def network_verdict(link: Link, split: Split) -> str:
    share = split.transfer_share
    if share >= FELT and not is_bandwidth(link, split):
        return "Not its bandwidth."
    if share >= BOUND:
        return "Yes."
    if split.share(split.waiting_seconds) >= BOUND:
        return "No: a slow rank was."
    return "Partly." if share >= FELT else "No."


def answer_traffic(facts: Facts) -> Answer:
    """11. Bytes over capacity is the floor of the step time; how near the measured step comes to it."""
    link, split = facts.link, facts.split
    if link is None:
        return _inside_machine(facts)
    step = split.step_seconds if split is not None else facts.mean_step_seconds
    floor = link.floor_seconds
    if link.step_bytes is None or not step:
        return not_recorded(11, "What each rank sent in a step was not counted.", TIMINGS)
    if floor is None:
        return not_recorded(
            11,
            f"In every step {format_bytes(link.step_bytes)} leave each host, but the link was not measured.",
            CAPACITY,
        )
    told = [_identity(link, step, floor), _fullness(link, step, floor)]
    if split is not None:
        told.append(_faster(link, split))
    told.append("Utilisation says that a link is full; bytes over capacity say how long a step must take.")
    numbers = [
        Number("Out of each host in a step", f"{format_bytes(link.step_bytes)}, by {link.bytes_source}"),
        Number("Link, both ways at once", f"{rate_text(link.capacity or 0)} each way"),
        Number("Floor of a step", seconds_text(floor)),
        Number("Measured over floor", f"{step / floor:.2g}"),
    ]
    if split is not None:
        numbers += [Number(f"Step at {k} x the link", at_rate(step_seconds_at(link, split, k))) for k in (2, 10)]
    if link.full_share is not None:
        numbers.append(Number("Seconds above 90 % of capacity", percent(link.full_share)))
    slope = _regression(facts) if link.bytes_vary else None
    if slope is not None:
        numbers.append(Number("Waiting per MB sent, by regression", seconds_text(1e6 * slope)))
    return Answer(
        number=11,
        question=QUESTIONS[10],
        verdict=_traffic_verdict(step, floor),
        sentences=" ".join(text for text in told if text),
        numbers=tuple(numbers),
        chart="traffic",
        evidence=f"Bytes by {link.bytes_source}, capacity {link.capacity_source}." + _impossible(link),
        confidence="high" if link.is_measured else "low",
        missing="" if link.is_measured else CAPACITY,
    )


def _one_machine(facts: Facts) -> Answer:
    split = facts.split
    if facts.num_ranks == 1:
        text = "The run had one machine with one rank: nothing was exchanged and nothing crossed a network."
        text += " What limited it lies in that machine."
    else:
        text = (
            f"The run had one machine: its {facts.num_ranks} ranks exchanged inside it and nothing crossed a network."
        )
        if split is not None and split.step_seconds > 0:
            exchange = split.waiting_seconds + split.transfer_seconds
            text += (
                f" That exchange held a mean step up for {seconds_text(exchange)} ({percent(split.share(exchange))})."
            )
    return Answer(
        number=5,
        question=QUESTIONS[4],
        verdict="No.",
        sentences=text,
        chart="link",
        evidence="The hosts in manifest.json and the timing files.",
    )


def _inside_machine(facts: Facts) -> Answer:
    sent = None
    if facts.grid is not None and facts.num_ranks > 1:
        sent = float(np.nanmax(np.nanmedian(np.nan_to_num(facts.grid.sent_bytes), axis=0)))
    text = "With one machine there is no traffic between machines, so no step waits for a network."
    if sent:
        text += f" Each rank sends {format_bytes(sent)} to the others in a step, through the memory of the machine."
    text += " `dragoman plan` says what a second machine would bring."
    return Answer(
        number=11,
        question=QUESTIONS[10],
        verdict="Not at all: one machine.",
        sentences=text,
        chart="traffic",
        evidence="The hosts in manifest.json; sent_bytes in the timing files.",
    )


def _where_it_went(split: Split) -> str:
    computing = split.compute_seconds + split.optimizer_seconds
    return (
        f"Of a mean step of {seconds_text(split.step_seconds)}, {seconds_text(split.transfer_seconds)} "
        f"({percent(split.transfer_share)}) went by waiting for bytes after all ranks had come to the exchange, "
        f"{seconds_text(split.waiting_seconds)} ({percent(split.share(split.waiting_seconds))}) by waiting for the "
        f"slowest rank, and {seconds_text(computing)} ({percent(split.share(computing))}) by computing."
    )


def _bytes(link: Link) -> str:
    if link.step_bytes is None:
        return ""
    text = f"In every step {format_bytes(link.step_bytes)} leave each host and as much comes in"
    if link.capacity is None or link.floor_seconds is None:
        return f"{text}; what the link carries was not measured."
    carries = f"the link carries {rate_text(link.capacity)} each way at once"
    return f"{text}; {carries}, so these bytes need at least {seconds_text(link.floor_seconds)}."


def _faster(link: Link, split: Split) -> str:
    double, tenfold = step_seconds_at(link, split, 2), step_seconds_at(link, split, 10)
    if tenfold <= 0:
        return ""
    if tenfold > 0.93 * split.step_seconds:
        saved = percent(max(0.0, 1 - tenfold / split.step_seconds)) if split.step_seconds > 0 else "nothing"
        return f"A faster link would give little: one ten times as fast would shorten the step by {saved}."
    return (
        f"On a link twice as fast a step would take {seconds_text(double)}, on one ten times as fast "
        f"{seconds_text(tenfold)} ({times_text(split.step_seconds / tenfold)} the speed)."
    )


def _oddity(link: Link, split: Split) -> str:
    if split.transfer_share < FELT:
        return ""
    if not is_bandwidth(link, split):
        return "The bytes explain little of the waiting: it is latency, or the processors' work for the exchange."
    if link.is_sum_limited and link.alone:
        return f"One way alone it carries {rate_text(link.alone)}: the limit is on the sum of both directions."
    if link.is_below_card and link.claimed_bits:
        return f"The card says {bits_text(link.claimed_bits)}: check the port's speed with the provider."
    return ""


def _identity(link: Link, step: float, floor: float) -> str:
    formula = f"{link.formula}" if link.formula else f"{format_bytes(link.step_bytes or 0)}"
    how = f" ({format_bytes(link.step_bytes or 0)} by {link.bytes_source})" if link.formula else ""
    return (
        f"{formula}{how} leave each host in every step; over {rate_text(link.capacity or 0)} each way that is at least "
        f"{seconds_text(floor)}, and a mean step takes {seconds_text(step)}, {step / floor:.2g} times that floor."
    )


def _fullness(link: Link, step: float, floor: float) -> str:
    needed = f"So the link must be full for {percent(min(1.0, floor / step))} of the step"
    if link.full_share is None and link.mean_sent_rate and link.capacity:
        mean = percent(link.mean_sent_rate / link.capacity)
        return f"{needed}; the samples, each longer than a step, show it at {mean} of its capacity."
    if link.full_share is None:
        return f"{needed}."
    return f"{needed}; in {percent(link.full_share)} of the seconds of training it carried over 90 % of its capacity."


def _traffic_verdict(step: float, floor: float) -> str:
    if floor > 1.15 * step:
        return "The bytes took less time than the link's measured capacity allows."
    if step < 1.4 * floor:
        return "A step takes as long as its bytes need."
    return f"The bytes need {percent(floor / step)} of a step."


def _network_numbers(link: Link, split: Split) -> list[Number]:
    numbers = [
        Number("Waiting for bytes", f"{seconds_text(split.transfer_seconds)} ({percent(split.transfer_share)})"),
        Number("Waiting for the slowest rank", seconds_text(split.waiting_seconds)),
        Number("Step", at_rate(split.step_seconds)),
    ]
    if link.capacity is not None:
        numbers.append(Number("Link, both ways at once", f"{rate_text(link.capacity)} each way"))
    if link.alone is not None:
        numbers.append(Number("Link, one way alone", rate_text(link.alone)))
    if link.claimed_bits is not None:
        numbers.append(Number("The card says", bits_text(link.claimed_bits)))
    if link.full_share is not None:
        numbers.append(Number("Seconds above 90 % of capacity", percent(link.full_share)))
    numbers += [Number(f"Step at {k} x the link", at_rate(step_seconds_at(link, split, k))) for k in (2, 10)]
    return numbers


def _how_split(split: Split) -> str:
    if split.source == "starts":
        return "Each rank records when its exchange began, so the wait for the slowest is told from the transfer."
    return "The rank that waited least in a step gives the transfer; starts of the exchange, on one clock, are missing."


def _how_capacity(link: Link) -> str:
    cards = ", ".join(f"{card} on {host}" for host, card in sorted(link.cards.items()))
    text = f" Capacity {link.capacity_source}." if link.capacity else ""
    if cards:
        text += f" Cards: {cards}."
    if not link.is_card_right:
        text += (
            " That card sent far less than the exchange did: it is not the one, so the exchange's own count is used."
        )
    return text + _impossible(link)


def _impossible(link: Link) -> str:
    if not link.num_impossible:
        return ""
    return f" {link.num_impossible:,} counter readings that no such card can carry were left out."


def _confidence(link: Link, split: Split, num_steps: int) -> Confidence:
    if num_steps < 20 or not link.capacity_source:
        return "low"
    return "high" if split.source == "starts" and link.is_measured else "medium"


def _regression(facts: Facts) -> float | None:
    """Seconds of waiting for one byte more, where steps send differing amounts."""
    grid, split = facts.grid, facts.split
    if grid is None or split is None:
        return None
    sent = np.nansum(grid.sent_bytes, axis=1) / max(len(grid.ranks), 1)
    is_usable = np.isfinite(split.transfer) & np.isfinite(sent)
    x, y = sent[is_usable], split.transfer[is_usable]
    spread = float(((x - x.mean()) ** 2).sum()) if len(x) > 2 else 0.0
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return slope if slope > 0 else None
