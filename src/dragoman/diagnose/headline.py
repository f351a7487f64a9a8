"""The three lines before everything else, and what several hosts gave over one."""

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.link import BOUND, FELT, is_bandwidth
from dragoman.diagnose.remedies import (
    Remedy,
    effect_of,
    exchange_remedy,
    link_remedy,
    single_host_seconds,
    worth_of,
)
from dragoman.diagnose.rules import find
from dragoman.diagnose.wording import percent, seconds_text, sentence, times_text
from dragoman.units import plural

BROKEN = ("diverged", "gradient-exploding", "rate-too-high", "resumed-badly", "overfitting")
SLOWED = ("straggler", "input-bound", "link-slower", "validation-heavy", "checkpoint-heavy", "gpu-throttled")
NUMBERS = {2: "twice", 3: "three times", 4: "four times", 8: "eight times"}


def headline(facts: Facts) -> tuple[str, str, str]:
    """(what limited the run, what to do with its predicted effect, what that is worth in hours and money)."""
    if not facts.num_steps:
        return ("No step is recorded.", "Look at log.txt for the reason, and start the run again.", "")
    findings = {finding.code: finding for finding in find(facts)}
    for code in BROKEN:
        if code in findings and findings[code].level == "problem":
            return _from_finding(facts, findings[code])
    is_network = facts.split is not None and facts.link is not None and facts.split.transfer_share >= BOUND
    slowed = [code for code in SLOWED if code in findings]
    if slowed and not (is_network and slowed[0] != "link-slower"):
        return _from_finding(facts, findings[slowed[0]])
    if is_network:
        return _network(facts)
    return _computing(facts)


def scaling_line(facts: Facts) -> str | None:
    """'2 hosts gave 1.2 times the speed of one host, for twice the price.' None on one machine or unmeasured."""
    alone, together = single_host_seconds(facts), facts.median_step_seconds
    if alone is None or not together:
        return None
    price = f"for {NUMBERS.get(facts.num_hosts, f'{facts.num_hosts} times')} the price"
    steps = f"{seconds_text(together)} a step against {seconds_text(alone)}"
    if together >= alone:
        slower = times_text(together / alone)
        return f"{facts.num_hosts} hosts were {slower} as slow as one host alone would be, {price}: {steps}."
    return f"{facts.num_hosts} hosts gave {times_text(alone / together)} the speed of one host, {price}: {steps}."


def _network(facts: Facts) -> tuple[str, str, str]:
    split, link = facts.split, facts.link
    assert split is not None and link is not None, "a network-bound run has both"
    what = f"{percent(split.transfer_share)} of every step waited for bytes"
    if not is_bandwidth(link, split):
        first = f"The exchange limited the run, not its bandwidth: {what} that need far less time on this link."
    else:
        first = f"The network limited the run: {what}."
    remedies = [found for found in (exchange_remedy(facts), link_remedy(facts), _one_machine(facts)) if found]
    if not remedies:
        return first, "Neither another exchange nor a faster link helps much: use fewer hosts, or a larger batch.", ""
    best = min(remedies, key=lambda remedy: remedy.step_seconds)
    chosen = next(remedy for remedy in remedies if remedy.step_seconds < 1.15 * best.step_seconds)
    return first, f"{sentence(chosen.action)}: {effect_of(facts, chosen)}.", _worth(facts, chosen.step_seconds)


def _one_machine(facts: Facts) -> Remedy | None:
    """One host alone may be as fast, and costs a part."""
    alone, split = single_host_seconds(facts), facts.split
    if alone is None or split is None or alone > 0.9 * split.step_seconds:
        return None
    return Remedy("train on one of the hosts alone", alone)


def _computing(facts: Facts) -> tuple[str, str, str]:
    split = facts.split
    if split is None or split.step_seconds <= 0:
        return ("What limited the run is not recorded: there are no timing files.",
                "Train with this version of Dragoman: it records where each step's time goes.", "")  # fmt: skip
    waits = {
        "waiting for the exchange": split.transfer_seconds,
        "waiting for the slowest rank": split.waiting_seconds,
        "waiting for data": split.data_seconds,
        "what lies between the parts of a step": split.other_seconds,
    }
    name = max(waits, key=lambda part: waits[part])
    first = f"Computing limited the run: {percent(split.computing_share)} of every step."
    if split.computing_share < 0.5:
        first = f"No single thing limited the run: {percent(split.computing_share)} of every step was computing."
    outside = split.validation_seconds + split.checkpoint_seconds
    if outside > BOUND * split.wall_seconds:
        return (
            first,
            f"Outside the steps, evaluations and checkpoints took {percent(outside / split.wall_seconds)} of the run: "
            "raise evaluate.every_steps, or lower evaluate.max_decoded.",
            f"Half of them would save {worth_of(facts, outside / 2)}.",
        )
    if split.share(waits[name]) < FELT:
        second = f"Nothing to mend: {name}, the largest wait, is {percent(split.share(waits[name]))} of a step."
        third = "What is left to gain in hours or money is faster processors, more of them, or a smaller model."
        return first, second, third
    saved = waits[name] * facts.num_steps
    return (
        first,
        f"The largest wait is {name}: {seconds_text(waits[name])} of {seconds_text(split.step_seconds)} a step.",
        f"All of it over {plural(facts.num_steps, 'step')} is {worth_of(facts, saved)}.",
    )


def _from_finding(facts: Facts, finding: Finding) -> tuple[str, str, str]:
    return f"{finding.title}. {finding.evidence}", finding.advice, finding.effect


def _worth(facts: Facts, step_seconds: float) -> str:
    """Over the steps that were done, or planned where that is more."""
    assert facts.split is not None
    num_steps = max(facts.num_steps, facts.max_steps or 0)
    saved = (facts.split.step_seconds - step_seconds) * num_steps
    return f"Over {plural(num_steps, 'step')} that is worth {worth_of(facts, saved)}."
