"""Asks the hosts to probe each other over every candidate, and takes the best. Near side of `probe`."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.hosts.network import (
    OVERRIDES,
    Candidate,
    Card,
    Measured,
    Pair,
    choose,
    common_subnets,
    parse_cards,
    routed_candidates,
    show_cards,
    wanted_candidate,
)
from dragoman.launch.hosts.session import HostSession, call_all, call_each

FIREWALL = "open TCP between these addresses in the firewall (to each other only, never to the world)"
_LOOPBACK = {"interface": "lo", "address": "127.0.0.1", "netmask": "255.0.0.0"}

Say = Callable[[str], None]


def find_network(
    sessions: Sequence[HostSession],
    facts: Sequence[Mapping[str, Any]],
    interface: str | None,
    subnet: str | None,
    say: Say,
) -> Measured:
    """The network that all hosts reach each other over; the one fixed by the user, or the fastest."""
    hosts = [session.host for session in sessions]
    cards = [parse_cards(each["addresses"]) for each in facts]
    wanted, problems = wanted_candidate(hosts, cards, interface, subnet)
    if problems:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        raise DragomanError("\n  ".join(["not every host is on that network", *lines]), OVERRIDES)
    if wanted is None and len(hosts) == 1:
        wanted = Candidate("one host", (_lonely_card(cards[0]),))
    stages = [[wanted]] if wanted else [common_subnets(cards), _routed(cards, facts)]
    measured: list[Measured] = []
    for candidates in stages:
        measured += measure(sessions, candidates)
        best = choose(measured)
        if best is not None:
            _warn(best, wanted, say)
            return best
    raise _no_network(sessions, cards, measured)


def measure(sessions: Sequence[HostSession], candidates: Sequence[Candidate]) -> list[Measured]:
    """Probe all pairs over every candidate."""
    if len(sessions) == 1 or not candidates:
        return [Measured(candidate) for candidate in candidates]
    wanted = [{"addresses": [each.cards[index].address for each in candidates]} for index in range(len(sessions))]
    doors = call_each(sessions, "listen", wanted)
    # Not in a `finally`: Ctrl-C would wait for hosts that do not answer, and listeners end by themselves.
    try:
        measured = [
            _measure_one(sessions, candidate, [door[number] for door in doors])
            for number, candidate in enumerate(candidates)
        ]
    except DragomanError:
        with suppress(DragomanError):  # the first problem is the one to tell
            call_all(sessions, "stop_listening")
        raise
    call_all(sessions, "stop_listening")
    return measured


def _measure_one(sessions: Sequence[HostSession], candidate: Candidate, doors: Sequence[Mapping[str, Any]]) -> Measured:
    rates: dict[Pair, float] = {}
    problems: dict[Pair, str] = {
        (index, index): door["problem"] for index, door in enumerate(doors) if "problem" in door
    }
    for number, pairs in enumerate(probe_rounds(len(sessions))):
        if problems and number % 2 == 0:  # a failure costs seconds: both ways of one round are enough
            break
        senders = [sessions[sender] for sender, _ in pairs]
        asked = [{"address": candidate.cards[receiver].address, **doors[receiver]} for _, receiver in pairs]
        for pair, answer in zip(pairs, call_each(senders, "send_probe", asked), strict=True):
            if "problem" in answer:
                problems[pair] = answer["problem"]
            else:
                rates[pair] = answer["bytes_per_second"]
    return Measured(candidate, rates, problems)


def probe_rounds(num_hosts: int) -> Generator[list[Pair]]:
    """Every pair, each way alone: in a round no host sends or receives twice, or does both."""
    waiting = list(combinations(range(num_hosts), 2))
    while waiting:
        busy: set[int] = set()
        chosen: list[Pair] = []
        for pair in waiting:
            if busy.isdisjoint(pair):
                chosen.append(pair)
                busy.update(pair)
        waiting = [pair for pair in waiting if pair not in chosen]
        yield chosen
        yield [(receiver, sender) for sender, receiver in chosen]


def _routed(cards: Sequence[Sequence[Card]], facts: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    return routed_candidates(cards, [each["ssh_address"] for each in facts])


def _lonely_card(cards: Sequence[Card]) -> Card:
    private = [card for card in cards if card.is_private]
    return [*private, *cards, *parse_cards([_LOOPBACK])][0]


def _warn(best: Measured, wanted: Candidate | None, say: Say) -> None:
    if not best.candidate.is_private and len(best.candidate.cards) > 1:
        asked = "as asked" if wanted else "no private one joins all hosts"
        say(
            f"warning: the hosts talk over public addresses ({asked}): the run's ports are open there, "
            "so let the firewall admit these hosts only"
        )


def _no_network(
    sessions: Sequence[HostSession], cards: Sequence[Sequence[Card]], measured: Sequence[Measured]
) -> DragomanError:
    hosts = [session.host for session in sessions]
    if not measured:
        return DragomanError("\n  ".join(["the hosts share no network", *show_cards(hosts, cards)]), OVERRIDES)
    lines: list[str] = []
    for each in measured:
        for (sender, receiver), problem in each.problems.items():
            address = each.candidate.cards[receiver].address
            verb = "cannot listen on" if sender == receiver else "cannot reach"
            owner = "" if sender == receiver else f" of {hosts[receiver].name}"
            lines.append(f"{hosts[sender].name} {verb} {address}{owner}: {problem}")
    return DragomanError("\n  ".join(["the hosts do not reach each other", *lines]), f"{FIREWALL}; {OVERRIDES}")
