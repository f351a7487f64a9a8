"""The same text learned otherwise: one machine, a faster link, another exchange, more hosts, a bigger batch.

Always the same rows in the same order, whatever the setting; what it is already is left out.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from dragoman.plan.compute import Range, fitted
from dragoman.plan.cost import cost_of
from dragoman.plan.machines import PAYLOAD_SHARE
from dragoman.plan.microbatches import choose_number, cut, most_number
from dragoman.plan.setting import USUAL_LATENCY_SECONDS, Setting, settled, with_sync
from dragoman.plan.split import on_one_host, plan_step, train_seconds
from dragoman.plan.step import faster, for_ranks
from dragoman.plan.traffic import Placement, method_name, sync_of
from dragoman.run.promise import LinkProfile, StepSplit, WhatIf
from dragoman.units import format_bit_rate

LINK_FACTORS = (2, 10)
HOST_COUNTS = (2, 4, 8)
METHODS = (
    sync_of("dense", precision="fp32"),
    sync_of("dense", precision="bf16"),
    sync_of("int8"),
    sync_of("powersgd"),
    sync_of("diloco", precision="sign", every_steps=4),
    sync_of("diloco", precision="sign", every_steps=16),
)
USUAL_LINK = LinkProfile(1e9 / 8 * PAYLOAD_SHARE, USUAL_LATENCY_SECONDS)
QUALITY = {"powersgd": "costs quality", "diloco": "", "int8": "", "dense": ""}
SLOWEST_LINK, FASTEST_LINK = 1e4, 1e12


def what_ifs(setting: Setting) -> tuple[WhatIf, ...]:
    """All rows for a setting whose exchange is settled."""
    return tuple(_row(name, other, note) for name, other, note in _others(setting))


def _others(setting: Setting) -> Iterator[tuple[str, Setting, str]]:
    num_hosts = setting.placement.num_hosts
    if num_hosts > 1:
        yield "one machine", with_hosts(setting, 1), "no exchange between machines"
        assert setting.link is not None, "several hosts have a link"
        for factor in LINK_FACTORS:
            speed = format_bit_rate(8 * factor * setting.link.bytes_per_second)
            yield f"link x{factor}", replace(setting, link=faster(setting.link, factor)), f"{speed} get through"
        for sync in METHODS:
            if method_name(sync) != method_name(setting.recipe.sync):
                yield method_name(sync), with_sync(setting, sync), QUALITY[sync.method]
    for count in HOST_COUNTS:
        if count != num_hosts:
            other = with_hosts(setting, count)
            yield f"{count} hosts", other, "; ".join(_host_notes(setting, other))
    yield "batch x2", with_batch(setting, 2), f"half as many steps; learning rate x{2**0.5:.2f}, as Adam wants"


def _host_notes(setting: Setting, other: Setting) -> Iterator[str]:
    yield method_name(other.recipe.sync)
    if setting.link is None:
        yield "a link of 1 Gb/s assumed"
    if other.placement.num_ranks > other.recipe.batch.num_microbatches:
        yield f"only {other.recipe.batch.num_microbatches} microbatches: some ranks have none"


def with_hosts(setting: Setting, num_hosts: int) -> Setting:
    """As many hosts of the same kind, at the same price each, with the same exchange; a host alone sums exactly."""
    placement = setting.placement
    if num_hosts == placement.num_hosts:
        return setting
    per_hour = setting.prices.per_hour
    prices = replace(setting.prices, per_hour=None if per_hour is None else per_hour / placement.num_hosts * num_hosts)
    if num_hosts == 1:
        return replace(on_one_host(setting), prices=prices)
    num_ranks = num_hosts * placement.ranks_per_host
    link = for_ranks(setting.link, placement.num_ranks, num_ranks) if setting.link else USUAL_LINK
    other = recut(replace(setting, placement=Placement(num_hosts, num_ranks), link=link, prices=prices))
    if placement.num_hosts == 1:
        # Alone the exchange did not matter: take what `auto` would.
        other = settled(with_sync(other, sync_of("auto")))
    return other


def recut(setting: Setting) -> Setting:
    """Where the recipe leaves it open, another number of microbatches if the ranks cannot share this one evenly."""
    given, vocab_size, num_ranks = setting.given, setting.text.vocab_size, setting.placement.num_ranks
    is_fit = setting.recipe.batch.num_microbatches % num_ranks == 0
    if given.batch.num_microbatches != "auto" or is_fit or num_ranks > most_number(given):
        return setting
    number = choose_number(given, vocab_size, num_ranks, setting.free_bytes, setting.value_bytes)
    recipe = cut(setting.recipe, number)
    compute = setting.compute
    middle, fastest, slowest = (
        fitted(profile, recipe, vocab_size)[0] for profile in (compute.middle, compute.fastest, compute.slowest)
    )
    return replace(setting, recipe=recipe, compute=Range(middle, fastest, slowest))


def with_batch(setting: Setting, factor: int) -> Setting:
    """So many times the text in a step, gradients accumulated: no more memory, fewer exchanges."""
    batch = setting.recipe.batch
    larger = batch.model_copy(update={"target_tokens": factor * batch.target_tokens})
    recipe = cut(setting.recipe.model_copy(update={"batch": larger}), factor * batch.num_microbatches)
    return replace(setting, recipe=recipe, num_steps=math.ceil(setting.num_steps / factor))


def _row(name: str, setting: Setting, note: str) -> WhatIf:
    step = plan_step(setting)
    seconds = train_seconds(setting, step)
    sent = step.traffic.sent_bytes * setting.placement.num_hosts * setting.num_steps
    cost = cost_of(setting.prices, seconds, sent, 0.0).total
    return WhatIf(name, step.split.total_seconds, seconds, cost, limit_of(step.split), note)


def limit_of(split: StepSplit) -> str:
    """The largest part."""
    parts = {
        "compute": split.compute_seconds,
        "exchange": split.exchange_seconds,
        "optimizer": split.optimizer_seconds,
        "data": split.data_seconds,
    }
    return max(parts, key=lambda name: parts[name])


def break_even(setting: Setting) -> str:
    """From which link on several hosts finish before one, in a sentence."""
    several = setting if setting.placement.num_hosts > 1 else with_hosts(setting, 2)
    assert several.link is not None, "several hosts have a link"
    alone = plan_step(with_hosts(several, 1)).split.total_seconds
    here = plan_step(several).split.total_seconds
    count, method = several.placement.num_hosts, method_name(several.recipe.sync)
    speed = break_even_rate(several, alone)
    if speed is None:
        return f"{count} hosts with {method} are no faster than one, whatever the link: a step computes too little"
    needed, carries = (format_bit_rate(8 * rate) for rate in (speed, several.link.bytes_per_second))
    verdict = f"{_times(alone / here)} as fast as one" if here <= alone else f"{_times(here / alone)} as slow as one"
    return f"{count} hosts with {method} beat one from {needed} on; this link carries {carries}: {verdict}"


def break_even_rate(setting: Setting, alone_seconds: float) -> float | None:
    """Bytes a second at which a step takes as long as on one host; None where no link is fast enough."""
    link = setting.link
    assert link is not None, "several hosts have a link"

    def is_faster(rate: float) -> bool:
        other = replace(setting, link=faster(link, rate / link.bytes_per_second))
        return plan_step(other).split.total_seconds < alone_seconds

    if not is_faster(FASTEST_LINK):
        return None
    low, high = SLOWEST_LINK, FASTEST_LINK
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_faster(middle) else (middle, high)
    return high


def _times(factor: float) -> str:
    return f"{factor:.2g} times" if factor < 10 else f"{factor:,.0f} times"
