"""Findings on waiting: the network, its link and card, a slow host, slow input, a broken promise."""

import numpy as np

from dragoman.diagnose.facts import MIN_STEPS, Facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.link import BOUND, FELT, is_bandwidth
from dragoman.diagnose.remedies import effect_of, exchange_remedy, link_remedy, worth_of
from dragoman.diagnose.split import find_straggler
from dragoman.diagnose.statistics import find_break, finite_median
from dragoman.diagnose.wording import at_rate, bits_text, percent, rate_text, seconds_text, sentence, times_text
from dragoman.units import format_bytes

LATE_SHARE = 0.15  # of a step
LAST_SHARE = 0.6  # of the steps
INPUT_SHARE = 0.15
MISSED = 0.25
SLOWER = 1.4
MAX_POINTS = 2_000  # of a series searched for a break


def network_bound(facts: Facts) -> Finding | None:
    link, split = facts.link, facts.split
    if link is None or split is None or split.num_steps < MIN_STEPS or not is_bandwidth(link, split):
        return None
    # Mean and median: one hiccup moves the first, a method that sends rarely the second.
    if split.transfer_share < BOUND or split.usual_transfer_share < 0.8 * BOUND:
        return None
    evidence = f"{percent(split.transfer_share)} of every step, {seconds_text(split.transfer_seconds)} of "
    evidence += f"{seconds_text(split.step_seconds)}, waited for bytes"
    if link.step_bytes and link.capacity:
        evidence += f": {format_bytes(link.step_bytes)} out of each host over a link of {rate_text(link.capacity)}"
    remedies = [remedy for remedy in (exchange_remedy(facts), link_remedy(facts)) if remedy is not None]
    advice = [sentence(remedy.action) for remedy in remedies] or ["Use a faster link"]
    return Finding(
        "network-bound",
        "The network limits the run",
        "problem",
        evidence + ".",
        "; or ".join([advice[0], *(text[0].lower() + text[1:] for text in advice[1:])]) + ".",
        "; or ".join(effect_of(facts, remedy) for remedy in remedies),
    )


def link_sum_limited(facts: Facts) -> Finding | None:
    link, split = facts.link, facts.split
    if link is None or split is None or split.num_steps < MIN_STEPS or split.transfer_share < FELT:
        return None
    if not link.is_sum_limited or link.alone is None or link.capacity is None:
        return None
    return Finding(
        "link-sum-limited",
        "Both directions of the link share one limit",
        "warning",
        f"One way alone the link carries {rate_text(link.alone)}, both ways at once {rate_text(link.capacity)} each.",
        "Ask the provider for a full-duplex port, or count on half of the advertised speed: an exchange always sends "
        "and receives at once.",
        f"A step of {seconds_text(max(split.step_seconds - split.transfer_seconds / 2, 0.0))} with the full speed "
        "both ways." if is_bandwidth(link, split) else "",
    )  # fmt: skip


def card_slower_than_it_says(facts: Facts) -> Finding | None:
    link, split = facts.link, facts.split
    if link is None or split is None or split.num_steps < MIN_STEPS or split.transfer_share < FELT:
        return None
    carried = link.alone or link.capacity
    if not link.is_below_card or not carried or not link.claimed_bits:
        return None
    cards = ", ".join(f"{card} on {host}" for host, card in sorted(link.cards.items()))
    return Finding(
        "card-slower-than-it-says",
        "The network card carries far less than it says",
        "warning",
        f"The card{f' ({cards})' if cards else ''} says {bits_text(link.claimed_bits)}, and the link carried "
        f"{bits_text(8 * carried)} when measured.",
        "Check the port's speed with the provider, and the switch, cable and shaping between the hosts.",
        f"At the speed the card says, the bytes of a step would take "
        f"{seconds_text(8 * (link.step_bytes or 0) / link.claimed_bits)}." if link.step_bytes else "",
    )  # fmt: skip


def link_slower(facts: Facts) -> Finding | None:
    """A lasting step up in the time that the same bytes take."""
    link, split, grid = facts.link, facts.split, facts.grid
    if link is None or split is None or grid is None:
        return None
    sent = np.nanmean(np.nan_to_num(grid.sent_bytes), axis=1)
    per_byte = split.transfer / (np.maximum(sent, 1.0) / max(float(np.median(sent)), 1.0))
    usable = np.flatnonzero(np.isfinite(per_byte) & (split.is_steady > 0))
    stride = max(1, -(-len(usable) // MAX_POINTS))
    usable = usable[: len(usable) // stride * stride]
    blocks = np.median(per_byte[usable].reshape(-1, stride), axis=1)
    found = find_break(blocks)
    step = finite_median(split.step) or 0.0
    if found is None or found.after < SLOWER * found.before or found.after - found.before < FELT * step:
        return None
    if found.after - found.before < 3 * found.noise:
        return None
    since = int(grid.step[usable[found.index * stride]])
    growth = times_text(found.after / found.before) if found.before > 0 else "many times"
    return Finding(
        "link-slower",
        "The link became slower during the run",
        "problem",
        f"Since step {since:,} a step waits {seconds_text(found.after)} for the same bytes, {growth} the "
        f"{seconds_text(found.before)} before.",
        "Look for other traffic on the link, a port that fell back to a lower speed, or a provider's limit after a "
        "quota; `dragoman doctor` measures it now.",
        f"{seconds_text(found.after - found.before)} less in every step.",
        since,
    )


def straggler(facts: Facts) -> Finding | None:
    grid, split = facts.grid, facts.split
    if grid is None or split is None or split.num_steps < MIN_STEPS or split.step_seconds <= 0:
        return None
    found = find_straggler(grid, facts.has_clocks)
    if found is None or found.last_share < LAST_SHARE or found.late_seconds < LATE_SHARE * split.step_seconds:
        return None
    if found.own_seconds - found.others_seconds < 0.5 * found.late_seconds:
        return None  # late, but not from its own work: clocks, or the way the exchange is timed
    who = f"host {found.host}" if facts.num_hosts > 1 else f"rank {found.rank}"
    what = "data and computing, most of it waiting for data," if found.is_data else "computing"
    return Finding(
        "straggler",
        f"The others wait for {who}",
        "problem" if split.share(found.late_seconds) >= BOUND else "warning",
        f"{sentence(who)} came last to the exchange in {percent(found.last_share)} of the steps, "
        f"{seconds_text(found.late_seconds)} ({percent(split.share(found.late_seconds))} of a step) after the others: "
        f"{what} takes it {seconds_text(found.own_seconds)}, the others {seconds_text(found.others_seconds)}.",
        f"Look at what else runs on {found.host}, its clocks, temperature and disk; or leave it out, if the others "
        "alone are faster.",
        f"Up to {seconds_text(found.late_seconds)} less in every step.",
    )


def input_bound(facts: Facts) -> Finding | None:
    split, grid = facts.split, facts.grid
    if split is None or grid is None or split.num_steps < MIN_STEPS:
        return None
    data = np.nanmean(np.nan_to_num(grid.parts["data"]), axis=1)
    if split.share(split.data_seconds) < INPUT_SHARE or split.usual_share(data) < 0.7 * INPUT_SHARE:
        return None
    saved = split.data_seconds * facts.num_steps
    return Finding(
        "input-bound",
        "Training waits for data",
        "problem" if split.share(split.data_seconds) >= BOUND else "warning",
        f"{percent(split.share(split.data_seconds))} of every step, {seconds_text(split.data_seconds)} of "
        f"{seconds_text(split.step_seconds)}, waited for the next batch.",
        "Put the data folder on a local disk, and give the run a free processor core for every rank.",
        f"Up to {worth_of(facts, saved)} over these steps.",
    )


def prediction_missed(facts: Facts) -> Finding | None:
    promised, measured = facts.run.prediction, facts.median_step_seconds
    if promised is None or not measured or not facts.is_enough or promised.step.total_seconds <= 0:
        return None
    low, high = promised.step.total_seconds, promised.step.total_seconds
    if not promised.is_measured and promised.high_step_seconds > 0:
        low, high = promised.low_step_seconds, promised.high_step_seconds
    if low / (1 + MISSED) <= measured <= high * (1 + MISSED):
        return None
    is_slower = measured > high
    factor = measured / high if is_slower else low / measured
    seconds = facts.steps.seconds[np.isfinite(facts.steps.seconds)]
    # The plan was right where the quickest steps keep it: something else used the machines meanwhile.
    was_disturbed = is_slower and float(np.quantile(seconds, 0.1)) <= high * (1 + MISSED)
    disturbed = " The quickest tenth of the steps kept the promise: something else used the machines at times."
    return Finding(
        "prediction-missed",
        f"Steps were {'slower' if is_slower else 'faster'} than predicted",
        "warning" if is_slower and not was_disturbed else "note",
        f"A median step took {at_rate(measured)}; the plan said {at_rate(promised.step.total_seconds)}: "
        f"{times_text(factor)} {'slower' if is_slower else 'faster'}.{_which_part(facts)}"
        f"{disturbed if was_disturbed else ''}",
        "Measure again with `dragoman doctor` and compare the parts: the one that grew is the one to look at."
        if is_slower
        else "Measure again with `dragoman doctor` before you plan the next run.",
    )


def _which_part(facts: Facts) -> str:
    """The part that differs most from its promise."""
    split, promised = facts.split, facts.run.prediction
    if split is None or promised is None:
        return ""
    parts = {
        "computing": (split.compute_seconds, promised.step.compute_seconds),
        "the exchange": (split.transfer_seconds + split.waiting_seconds, promised.step.exchange_seconds),
        "the optimizer": (split.optimizer_seconds, promised.step.optimizer_seconds),
        "data": (split.data_seconds, promised.step.data_seconds),
    }
    name = max(parts, key=lambda part: abs(parts[part][0] - parts[part][1]))
    took, said = parts[name]
    return f" The largest difference is {name}: {seconds_text(took)} instead of {seconds_text(said)}."
