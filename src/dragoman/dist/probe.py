"""How fast the link between hosts is, measured the way the exchange will use it: one rank per host, real collectives.

A shaped link lets a first burst through, and connections gather speed: every rate here is that of a stream whose first
part is not counted. Ranks agree on what comes next, since their clocks disagree about who was fast.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from dragoman.dist.card import card_speed, exchange_card
from dragoman.dist.clock import now
from dragoman.dist.dense import BUCKET_BYTES
from dragoman.dist.limits import MEASURE_SECONDS, measure_seconds
from dragoman.dist.world import Pending, World
from dragoman.run.promise import LinkProfile, PairSpeed, SumTime

NUM_PINGS = 15
FIRST_BYTES, MOST_PIECE_BYTES = 32_000, 16_000_000
LONG_ENOUGH_SECONDS = 0.03
PIECE_SECONDS = 0.04  # of a stream, as first estimated
NUM_UNDER_WAY = 4
WARM_UP_SECONDS, STREAM_SECONDS = 0.6, 2.4  # a lost packet costs a slow link a tenth of a second
PAIR_WARM_UP_SECONDS, PAIR_SECONDS = 0.25, 0.6
SUM_BYTES = (256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000)
MOST_SUM_SECONDS = 3.0
SUMS_SHARE = 0.45  # of the budget, at most

Start = Callable[[int], Pending[Any]]  # sets out a piece of so many bytes
Pair = tuple[int, int]


def measure_link(
    world: World, budget_seconds: float | None = None, say: Callable[[str], None] = lambda _: None
) -> LinkProfile:
    """The link by what one rank per host can send; all ranks call this together. Takes the budget at most.

    What matters most comes first: where time is short, sums of many bytes and single pairs are left out.
    """
    budget_seconds = budget_seconds or measure_seconds()
    deadline = time.monotonic() + budget_seconds
    leaders = world.between_hosts()
    say("link: all hosts at once, both ways")
    latency = sorted(_ping(world) for _ in range(NUM_PINGS))[NUM_PINGS // 2]
    share = min(1.0, budget_seconds / MEASURE_SECONDS)
    mine = _all_at_once(leaders, share) if world.local_rank == 0 else None
    rates = [rate for rate in world.gather(mine) if rate is not None]
    say("link: sums of growing size")
    sums = _sums(world, min(deadline, time.monotonic() + SUMS_SHARE * budget_seconds))
    say("link: each way alone")
    pairs = _pairs(leaders, mine or 0.0, deadline) if world.local_rank == 0 else None
    facts = world.gather([world.host, _card(), latency, pairs])
    names = [host for host, _, _, found in facts if found is not None]
    speeds = _pair_speeds(names, [found for *_, found in facts if found is not None])
    return LinkProfile(
        bytes_per_second=min(rates),
        latency_seconds=max(each for _, _, each, _ in facts),
        alone_bytes_per_second=min((pair.alone_bytes_per_second for pair in speeds), default=None),
        interfaces={host: card for host, (card, _), *_ in facts if card},
        card_bits_per_second={host: speed for host, (_, speed), *_ in facts if speed},
        pairs=speeds,
        sums=sums,
    )


def _ping(world: World) -> float:
    start = now(world.device)
    world.any(False)
    return now(world.device) - start


def _all_at_once(leaders: World, share: float) -> float:
    """Bytes a second that leave this host while as many come in from the others."""
    if leaders.is_alone:
        return float("inf")

    def start(num_bytes: int) -> Pending[Any]:
        return leaders.start_gather(torch.zeros(num_bytes, dtype=torch.uint8, device=leaders.carrier))

    num_bytes, seconds = _first_look(leaders, start)
    rate = num_bytes / max(seconds)
    return (leaders.size - 1) * _stream(leaders, start, rate, share * WARM_UP_SECONDS, share * STREAM_SECONDS)


def _first_look(leaders: World, start: Start) -> tuple[int, list[float]]:
    """A piece that somebody needed long enough for to tell, and every leader's seconds: a burst flatters them."""
    num_bytes = FIRST_BYTES
    leaders.any(False)  # whoever gave last may be done long before all of it has arrived
    while True:
        begin = now(leaders.device)
        start(num_bytes).wait()
        seconds = leaders.gather(now(leaders.device) - begin)
        if max(seconds) >= LONG_ENOUGH_SECONDS or num_bytes >= MOST_PIECE_BYTES:
            return num_bytes, seconds
        num_bytes *= 4


def _stream(leaders: World, start: Start, rate: float, warm_up_seconds: float, seconds: float) -> float:
    """Bytes a second of a stream of pieces that keeps the link full, the warm-up not counted."""
    num_bytes = int(min(max(rate * PIECE_SECONDS, FIRST_BYTES / 4), MOST_PIECE_BYTES))
    piece_seconds = num_bytes / rate
    num_warm_up = max(NUM_UNDER_WAY, round(warm_up_seconds / piece_seconds))
    num_pieces = num_warm_up + max(NUM_UNDER_WAY, round(seconds / piece_seconds))
    under_way: deque[Pending[Any]] = deque()
    begin = 0.0
    for number in range(num_pieces + NUM_UNDER_WAY):
        if number >= NUM_UNDER_WAY:
            under_way.popleft().wait()
            if number == NUM_UNDER_WAY + num_warm_up - 1:
                begin = now(leaders.device)
        if number < num_pieces:
            under_way.append(start(num_bytes))
    return (num_pieces - num_warm_up) * num_bytes / (now(leaders.device) - begin)


def _sums(world: World, deadline: float) -> tuple[SumTime, ...]:
    """All ranks, in buckets as the exact exchange has them. Stops where the next one would take too long."""
    found: list[SumTime] = []
    for num_bytes in SUM_BYTES:
        last = found[-1].seconds if found else 0.0
        expected = last * num_bytes / found[-1].num_bytes if found else 0.0
        left = deadline - time.monotonic()
        if world.any(expected > min(MOST_SUM_SECONDS, left) or left <= 0):
            break
        num_tries = 3 if expected < 0.1 else 1
        seconds = min(max(world.gather(_sum_seconds(world, num_bytes))) for _ in range(num_tries))
        found.append(SumTime(num_bytes, seconds))
    return tuple(found)


def _sum_seconds(world: World, num_bytes: int) -> float:
    values = torch.zeros(num_bytes // 4, device=world.device)
    world.any(False)
    start = now(world.device)
    for pending in [world.start_sum(bucket) for bucket in values.split(BUCKET_BYTES // 4)]:
        pending.wait()
    return now(world.device) - start


def _pairs(leaders: World, all_at_once: float, deadline: float) -> list[tuple[int, float, float]]:
    """(source, bytes a second that came here alone, and while as much went back). All leaders together."""
    found: list[tuple[int, float, float]] = []
    rounds = _rounds(leaders.size)
    num_streams = 2 if leaders.size == 2 else 3  # of two hosts, all at once and a pair both ways are the same
    # Fewer seconds for each where hosts are many.
    each_seconds = (deadline - time.monotonic()) / max(1, num_streams * len(rounds))
    share = min(leaders.gather(min(1.0, max(0.25, each_seconds / (PAIR_WARM_UP_SECONDS + PAIR_SECONDS)))))
    for pairs in rounds:
        if leaders.any(time.monotonic() >= deadline):
            break
        peer = next((sum(pair) - leaders.rank for pair in pairs if leaders.rank in pair), None)
        is_lower = peer is not None and leaders.rank < peer
        ways = [(is_lower, not is_lower), (not is_lower, is_lower), (True, True)][:num_streams]
        rates = [_one_stream(leaders, peer, gives, takes, share) for gives, takes in ways]
        if peer is not None:
            found.append((peer, rates[1] if is_lower else rates[0], (*rates, all_at_once)[2]))
    return found


def _one_stream(leaders: World, peer: int | None, gives: bool, takes: bool, share: float) -> float:
    """Of a pair's side; a host without a partner in this round only waits with the others."""

    def start(num_bytes: int) -> Pending[Any]:
        outgoing, incoming = (torch.zeros(num_bytes, dtype=torch.uint8, device=leaders.carrier) for _ in range(2))
        assert peer is not None
        return leaders.start_trade(peer, outgoing if gives else None, incoming if takes else None)

    def nothing(_num_bytes: int) -> Pending[Any]:
        return Pending((), lambda: None)

    num_bytes, seconds = _first_look(leaders, nothing if peer is None else start)
    if peer is None:
        return 0.0
    rate = num_bytes / max(seconds[leaders.rank], seconds[peer])
    return _stream(leaders, start, rate, share * PAIR_WARM_UP_SECONDS, share * PAIR_SECONDS)


def _rounds(size: int) -> list[list[Pair]]:
    """Every pair once; in a round no host has two partners."""
    waiting = list(itertools.combinations(range(size), 2))
    rounds: list[list[Pair]] = []
    while waiting:
        chosen: list[Pair] = []
        for pair in waiting:
            if all(set(pair).isdisjoint(other) for other in chosen):
                chosen.append(pair)
        waiting = [pair for pair in waiting if pair not in chosen]
        rounds.append(chosen)
    return rounds


def _pair_speeds(names: list[str], found: list[list[tuple[int, float, float]]]) -> tuple[PairSpeed, ...]:
    """What every receiver counted, by host names."""
    return tuple(
        PairSpeed(names[source], target, alone, both)
        for target, each in zip(names, found, strict=True)
        for source, alone, both in each
    )


def _card() -> tuple[str | None, int | None]:
    """The card that the launcher chose, and the bits a second it says it runs at."""
    card = exchange_card()
    return card, None if card is None else card_speed(card)
