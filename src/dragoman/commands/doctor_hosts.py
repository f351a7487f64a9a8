"""Doctor's rounds: this machine, or several hosts through the sessions and agents that a run uses. Facts and checks."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman.commands.doctor_measure import measure_here, measure_hosts, team_of
from dragoman.commands.doctor_round import Round, Say, Wish
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.launch.hosts.hosts import Host
    from dragoman.launch.hosts.network import Measured
    from dragoman.launch.hosts.session import HostSession

NUM_CLOCK_READINGS = 3
CHECKUP_SECONDS = 60.0


def see_this_machine(wish: Wish, say: Say) -> Round:
    """Facts and compute of the machine that the command runs on."""
    from dragoman.diagnose.preflight.checks import facts_from
    from dragoman.launch.hosts.checkup import checkup

    say("this machine: load, memory, disk")
    facts = facts_from(checkup("."))
    found = Round([facts], {facts.name: wish.workers or len(facts.gpus) or 1})
    if wish.recipe is not None:
        say("compute: a few passes of the recipe")
        found.measured = measure_here(wish, found.ranks[facts.name], found)
    return found


def see_hosts(wish: Wish, hosts: "Sequence[Host]", say: Say) -> Round:
    """Facts of every host and, where they are fit for it, what their ranks measure together."""
    from dragoman.launch.hosts.network import parse_subnet
    from dragoman.launch.hosts.session import open_sessions

    if wish.subnet is not None:
        parse_subnet(wish.subnet)
    hosts = [replace(host, num_workers=host.num_workers or wish.workers) for host in hosts]
    found = Round(prices={host.name: host.price_per_hour for host in hosts})
    say("hosts: connecting")
    with open_sessions(hosts) as sessions:
        answers = _ask_all(sessions, "facts", {}, found)
        if not answers:
            return found
        place = _Place(answers, wish)
        say("hosts: load, memory, disk, clocks")
        _check_up(answers, place.folder, found)
        if len(answers) < len(sessions) or not _are_fit(found):
            return found
        say("network: which one joins all hosts")
        network = _find_network(answers, wish, found)
        if network is None:
            return found
        team = team_of(answers, network, place.is_first_here)
        found.ranks = {member.name: member.num_workers for member in team.members}
        data = _common_data(answers, place, found)
        found.measured = measure_hosts(sessions, team, wish, data, found, say)
    return found


class _Place:
    """Where paths of the command lead on the hosts."""

    def __init__(self, answers: "Mapping[HostSession, Mapping[str, Any]]", wish: Wish) -> None:
        from dragoman.launch.hosts.assembly import path_on_hosts
        from dragoman.launch.hosts.facts import machine_identity

        first = next(iter(answers.values()))
        self.is_first_here = first["identity"] == machine_identity()
        self.folder = path_on_hosts("runs", self.is_first_here)
        self.data = None if wish.data is None else path_on_hosts(wish.data, self.is_first_here)


def _ask_all(
    sessions: "Sequence[HostSession]", op: str, arguments: Mapping[str, Any], found: Round
) -> "dict[HostSession, Any]":
    """Answers of those that give one; the others become checks."""
    from dragoman.diagnose.preflight.checks import Check
    from dragoman.launch.hosts.session import side_by_side

    asked = [
        lambda session=session: session.call(op, timeout_seconds=CHECKUP_SECONDS, **arguments) for session in sessions
    ]
    answers: dict[HostSession, Any] = {}
    for session, answer in zip(sessions, side_by_side(asked), strict=True):
        if isinstance(answer, DragomanError):
            name, evidence = session.host.name, answer.message.removeprefix(f"{session.host.name}: ")
            found.checks.append(Check("reachable", "hurts", name, "does not answer", evidence, answer.hint))
        else:
            answers[session] = answer
    return answers


def _check_up(answers: "Mapping[HostSession, Mapping[str, Any]]", folder: str, found: Round) -> None:
    """Facts of every host; of one with other code only what all versions tell."""
    from dragoman.diagnose.preflight.checks import HostFacts, facts_from

    alike = [session for session, answer in answers.items() if answer["versions"]["code"] == found.ours["code"]]
    told = _ask_all(alike, "checkup", {"folder": folder}, found)
    for session, answer in answers.items():
        if session in told:
            facts = facts_from({**told[session], "name": session.host.name})
            ahead, error = _clock_ahead(session)
            facts = replace(facts, clock_ahead_seconds=ahead, clock_error_seconds=error)
        else:
            facts = HostFacts(session.host.name, dict(answer["versions"]), tuple(answer["identity"]))
        found.hosts.append(facts)
        found.ranks[facts.name] = session.host.num_workers or answer["num_gpus"] or 1


def _clock_ahead(session: "HostSession") -> tuple[float, float]:
    """Seconds by which the host's clock is ahead of ours, and by how much that may be wrong: half a round trip."""
    readings: list[tuple[float, float]] = []
    for _ in range(NUM_CLOCK_READINGS):
        before = time.time()
        there = session.call("read_clock")
        after = time.time()
        readings.append(((after - before) / 2, there - (before + after) / 2))
    error, ahead = min(readings)
    return ahead, error


def _are_fit(found: Round) -> bool:
    """Whether ranks of these hosts can be joined at all."""
    from dragoman.diagnose.preflight.checks import worst
    from dragoman.diagnose.preflight.hosts import check_together

    return not found.checks and worst(check_together(found.hosts, found.ours)) != "hurts"


def _find_network(answers: "Mapping[HostSession, Mapping[str, Any]]", wish: Wish, found: Round) -> "Measured | None":
    from dragoman.diagnose.preflight.checks import CardFacts, Check
    from dragoman.diagnose.preflight.link import Route
    from dragoman.launch.hosts.routes import find_network

    try:
        network = find_network(list(answers), list(answers.values()), wish.interface, wish.subnet, lambda _: None)
    except DragomanError as error:
        title, _, rest = error.message.partition("\n")
        evidence = "; ".join(line.strip() for line in rest.splitlines()) or title
        found.checks.append(Check("firewall", "hurts", "", title, evidence, error.hint))
        return None
    cards: dict[str, CardFacts] = {}
    for host, card in zip(found.hosts, network.candidate.cards, strict=True):
        known = next((each for each in host.cards if each.address == card.address), None)
        cards[host.name] = known or CardFacts(card.interface, card.address)
    is_wanted = wish.interface is not None or wish.subnet is not None
    found.route = Route(network.candidate.label, cards, network.candidate.is_private, is_wanted)
    return network


def _common_data(answers: "Mapping[HostSession, Mapping[str, Any]]", place: _Place, found: Round) -> str | None:
    """The data folder, where every host has the same; else lengths of usual text do."""
    from dragoman.diagnose.preflight.checks import Check

    if place.data is None:
        return None
    told = _ask_all(list(answers), "inspect", {"data": place.data, "run": place.folder}, found)
    prints = {answer["data"]["fingerprint"] for answer in told.values()}
    if len(told) == len(answers) and len(prints) == 1 and "" not in prints:
        return place.data
    problems = [
        f"{session.host.name}: {answer['data']['problem'] or 'other data than the first'}"
        for session, answer in told.items()
        if answer["data"]["problem"] or len(prints) > 1
    ]
    advice = "`dragoman train --push-data` copies it; compute was measured with sentences of usual lengths"
    found.checks.append(Check("data", "note", "", "the hosts do not all have the data", "; ".join(problems), advice))
    return None
