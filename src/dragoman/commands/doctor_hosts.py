"""Doctor's rounds: this machine, or several hosts through the sessions and agents that a run uses. Facts and checks."""

import json
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError
from dragoman.train.profile_task import MARK, RANK_MODULE, ProfileTask

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.diagnose.preflight.checks import Check, HostFacts
    from dragoman.diagnose.preflight.link import Route
    from dragoman.launch.hosts.hosts import Host
    from dragoman.launch.hosts.members import Team
    from dragoman.launch.hosts.network import Measured
    from dragoman.launch.hosts.session import HostSession

NUM_CLOCK_READINGS = 3
CHECKUP_SECONDS = 60.0
PATIENCE_SECONDS = 300.0

Say = Callable[[str], None]
Measurements = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """What the user asked for."""

    recipe: "Recipe | None"
    data: Path | None
    workers: int | None
    interface: str | None
    subnet: str | None


def _our_versions() -> dict[str, str]:
    from dragoman.launch.hosts.package import versions

    return versions()


@dataclass
class Round:
    """What has been found so far."""

    hosts: "list[HostFacts]" = field(default_factory=list[Any])
    ranks: dict[str, int] = field(default_factory=dict[str, int])
    prices: dict[str, float | None] = field(default_factory=dict[str, float | None])
    checks: "list[Check]" = field(default_factory=list[Any])  # of reaching, network and measuring
    route: "Route | None" = None
    measured: Measurements | None = None  # by the ranks
    ours: dict[str, str] = field(default_factory=_our_versions)  # of the machine that asks


def see_this_machine(wish: Wish, say: Say) -> Round:
    """Facts and compute of the machine that the command runs on."""
    from dragoman.diagnose.preflight.checks import facts_from
    from dragoman.launch.hosts.checkup import checkup

    say("this machine: load, memory, disk")
    facts = facts_from(checkup("."))
    found = Round([facts], {facts.name: wish.workers or len(facts.gpus) or 1})
    if wish.recipe is not None:
        say("compute: a few passes of the recipe")
        found.measured = _measure_here(wish, found.ranks[facts.name], found)
    return found


def _measure_here(wish: Wish, num_workers: int, found: Round) -> Measurements | None:
    from dragoman.launch.local import start_workers

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        data = None if wish.data is None else str(wish.data.absolute())
        code = start_workers(RANK_MODULE, [_task(wish, str(out), data, is_quiet=True)], num_workers)
        if code == 0 and out.is_file():
            return json.loads(out.read_text(encoding="utf-8"))
    found.checks.append(_failed(f"the workers ended with exit code {code}"))
    return None


def _task(wish: Wish, out: str, data: str | None, is_quiet: bool) -> str:
    recipe = None if wish.recipe is None else wish.recipe.model_dump()
    return ProfileTask(out, recipe, data, is_quiet).to_json()


def _failed(reason: str) -> "Check":
    from dragoman.diagnose.preflight.checks import Check

    advice = "mend what the other checks say, then try again"
    return Check("measuring", "hurts", "", "measuring failed", reason, advice)


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
        team = _team(answers, network, place.is_first_here)
        found.ranks = {member.name: member.num_workers for member in team.members}
        data = _common_data(answers, place, found)
        found.measured = _measure(sessions, team, wish, data, found, say)
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


def _team(answers: "Mapping[HostSession, Mapping[str, Any]]", network: "Measured", is_first_here: bool) -> "Team":
    from dragoman.launch.hosts.assembly import members_of
    from dragoman.launch.hosts.members import Team

    members = members_of(answers, network, lambda _: None)
    token = secrets.token_hex(8)
    run = f"~/.cache/dragoman/doctor-{token}"
    return Team(members, network.candidate.label, network.slowest, "", run, "", is_first_here)


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


def _measure(
    sessions: "Sequence[HostSession]", team: "Team", wish: Wish, data: str | None, found: Round, say: Say
) -> Measurements | None:
    """Start the ranks as a run would, follow them, and bring home what the first one wrote."""
    from dragoman.launch.control.start import start_run
    from dragoman.launch.hosts.session import call_all, side_by_side

    token = team.run.rpartition("-")[2]
    say("ranks: starting")
    try:
        call_all(sessions, "make_scratch", token=token)
        task = _task(wish, f"{team.run}/measured.json", data, is_quiet=False)
        start_run(sessions, team, ["-m", RANK_MODULE, task], attempt=1)
        reason = _follow(sessions[0], team.run, say)
        text = sessions[0].call("read_measured", token=token) if not reason else None
        if text is not None:
            return json.loads(text)
        found.checks.append(_failed(reason or "the ranks wrote nothing"))
        return None
    except DragomanError as error:
        found.checks.append(_failed(error.message))
        return None
    finally:
        with suppress(DragomanError):  # it has ended, as a rule
            sessions[0].call("stop_run", run=team.run, is_now=True)
        # The first host last: the others may see its folder, on a shared disk or below an emulated host's own.
        drops = [lambda session=session: session.call("drop_scratch", token=token) for session in sessions]
        side_by_side(drops[1:])
        side_by_side(drops[:1])


def _follow(session: "HostSession", run: str, say: Say) -> str:
    """Show what is being measured until the ranks end; why they failed, or nothing."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    offset, others = 0, list[str]()
    while time.monotonic() < deadline:
        answer = session.call("look", run=run, offset=offset, num_last=0, wait_seconds=1.0)
        offset = answer["offset"]
        for line in answer["text"].splitlines():
            _, mark, text = line.partition(MARK)
            if mark:
                say(text)
            else:
                others.append(line)
        if not answer["text"] and not answer["is_alive"]:
            if answer["state"] == "ended" and answer["exit_code"] == 0:
                return ""
            errors = [line for line in others if "error" in line.lower()]
            return "; ".join(dict.fromkeys([answer["reason"] or "the controller ended", *errors[-2:]]))
    return f"it took more than {PATIENCE_SECONDS:.0f} s"
