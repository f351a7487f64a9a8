"""One attempt of a run: a fixed world of members from start to end, watched by the controller. No torch.

A host that is lost takes the attempt with it; one that joins meanwhile makes it save and leave, so that the next
attempt begins with it.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.launch.control.channel import Message
from dragoman.launch.control.gathering import Gathered
from dragoman.launch.control.links import Event, Links, Order
from dragoman.launch.control.logbook import Logbook
from dragoman.launch.control.outcome import FAILED, LEFT_BY_SIGNAL, USER_ERROR, Exit, Outcome, judge
from dragoman.launch.hosts.members import Member

PREPARE_SECONDS = 15.0
# A rank that fails takes the others down within a moment: what they report helps to find the cause.
ECHO_SECONDS = 2.0
# Workers have 7 s to save, and are killed then.
STOP_SECONDS = 10.0
PAUSE_SECONDS = 130.0  # nobody is in a hurry to let a host in: a step over a slow link may take long
SETTLE_SECONDS = 3.0  # hosts behind one switch come back together
SAVE_SECONDS = 2.0


@dataclass
class Attempt:
    """What is known while it runs."""

    number: int
    members: Sequence[Member]
    links: Links
    log: Logbook
    gathered: Gathered
    on_stop: Callable[[], None]
    waiting: set[str] = field(default_factory=set[str])  # hosts whose workers run
    exits: list[Exit] = field(default_factory=list[Exit])
    refusals: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])  # host, message, hint
    lost: list[str] = field(default_factory=list[str])
    is_silent: bool = False  # one of them
    late: list[str] = field(default_factory=list[str])  # told to end, and did not report in time
    order: Order | None = None  # the first that somebody gave
    admit_at: float | None = None  # when workers are told to save and leave, for somebody has joined
    stop_at: float | None = None  # when the rest is told to end
    give_up_at: float | None = None  # when nobody is waited for any more


def run_attempt(
    number: int,
    members: Sequence[Member],
    links: Links,
    log: Logbook,
    gathered: Gathered,
    command: Sequence[str],
    controller: tuple[int, float],
    on_stop: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run `command` (arguments of Python, to which the attempt's number is added) as the workers of all members, and
    say what came of it.

    `controller` is its process and when that began, as in control.json: so a host knows a disk that it shares with it.
    """
    attempt = Attempt(number, members, links, log, gathered, on_stop, {member.name for member in members})
    port = _prepare(attempt)
    if port is None:
        return _conclude(attempt)
    for number, member in enumerate(members):
        links.send(member.name, {**_start_message(attempt, number, port, command), "controller": list(controller)})
    saved_at = time.monotonic()
    while attempt.waiting:
        _take(attempt, links.next_event(0.2))
        _keep_time(attempt)
        if time.monotonic() - saved_at > SAVE_SECONDS:
            gathered.save()
            saved_at = time.monotonic()
    gathered.save()
    return _conclude(attempt)


def _prepare(attempt: Attempt) -> int | None:
    """The first host's agent opens the port where all ranks will meet; None if it cannot."""
    first = attempt.members[0].name
    attempt.links.send(first, {"type": "prepare", "attempt": attempt.number})
    deadline = time.monotonic() + PREPARE_SECONDS
    while time.monotonic() < deadline and not (attempt.lost or attempt.order or attempt.refusals):
        event = attempt.links.next_event(0.2)
        if event is not None and event.message is not None and _is_answer(attempt, event.message):
            return int(event.message["port"])
        _take(attempt, event)
    if not (attempt.lost or attempt.order or attempt.refusals):
        attempt.refusals.append((first, "could not open a port on its address", "look at its agent's output"))
    return None


def _is_answer(attempt: Attempt, message: Message) -> bool:
    return message["type"] == "listening" and message["attempt"] == attempt.number


def _start_message(attempt: Attempt, number: int, port: int, command: Sequence[str]) -> Message:
    member, members = attempt.members[number], attempt.members
    node = {
        "command": [*command, str(attempt.number)],
        "num_workers": member.num_workers,
        "node_rank": number,
        "node_names": [entry.name for entry in members],
        "address": members[0].address,
        "port": port,
    }
    gather = None if number == 0 else attempt.gathered.offsets(member.name)
    return {"type": "start", "attempt": attempt.number, "node": node, "gather": gather}


def _take(attempt: Attempt, event: Event | None) -> None:
    if event is None:
        return
    if event.kind == "message" and event.message is not None:
        _take_message(attempt, event.host, event.message)
    elif event.kind == "lost":
        _lose(attempt, event)
    elif event.kind == "joined" and event.host not in {member.name for member in attempt.members}:
        attempt.log.say(f"host {event.host} is there: the workers save and leave, to begin again with it")
        attempt.admit_at = time.monotonic() + SETTLE_SECONDS
    elif event.kind in ("stop", "kill", "preempt"):
        if event.kind == "preempt":
            attempt.log.say(f"{f'host {event.host}' if event.host else 'the run'} was told by a signal to leave")
        attempt.order = event.kind if attempt.order in (None, "admit") else attempt.order
        attempt.on_stop()
        _tell_to_end(attempt, event.kind)


def _lose(attempt: Attempt, event: Event) -> None:
    """The others wait for its ranks and can save nothing any more: they are ended at once."""
    if event.host in attempt.waiting:
        attempt.waiting.discard(event.host)
        attempt.lost.append(event.host)
        attempt.is_silent |= event.is_silent
        attempt.log.say(f"host {event.host} stopped answering ({event.text})")
        _tell_to_end(attempt, "kill")


def _take_message(attempt: Attempt, host: str, message: Message) -> None:
    match message["type"]:
        case "lines":
            attempt.log.add(host, ((int(rank), str(text)) for rank, text in message["lines"]))
        case "records":
            warning = attempt.gathered.add(host, message)
            if warning is not None:
                attempt.log.say(warning)
        case "ended" if message["attempt"] == attempt.number:
            attempt.waiting.discard(host)
            _take_report(attempt, host, message)
        case _:
            pass  # word from a later version


def _take_report(attempt: Attempt, host: str, report: dict[str, Any]) -> None:
    told = attempt.give_up_at is not None
    exits = [Exit(host, int(rank), int(code), told) for rank, code in report["exits"].items()]
    if report["refused"] is not None:
        attempt.refusals.append((host, *report["refused"]))
    elif report["code"] and not exits and not told:
        # torchrun's agent itself was ended; its first rank stands for it.
        exits = [Exit(host, _first_rank(attempt.members, host), int(report["code"]), told)]
    attempt.exits += exits
    if (exits or report["refused"]) and attempt.stop_at is None:
        attempt.stop_at = time.monotonic() + ECHO_SECONDS


def _first_rank(members: Sequence[Member], host: str) -> int:
    names = [member.name for member in members]
    return sum(member.num_workers for member in members[: names.index(host)])


def _keep_time(attempt: Attempt) -> None:
    now = time.monotonic()
    if attempt.stop_at is not None and now >= attempt.stop_at and attempt.give_up_at is None:
        # Where a rank has failed, nobody can save any more; where it was told to leave, the others may.
        is_leaving = all(entry.code in LEFT_BY_SIGNAL for entry in attempt.exits) and not attempt.refusals
        _tell_to_end(attempt, "stop" if is_leaving else "kill")
    if attempt.admit_at is not None and now >= attempt.admit_at and attempt.give_up_at is None:
        attempt.order = "admit"
        _tell_to_end(attempt, "admit")
    if attempt.give_up_at is not None and now >= attempt.give_up_at:
        for host in sorted(attempt.waiting):
            attempt.log.say(f"host {host} did not say in time that its workers are gone")
            attempt.links.drop(host)
        attempt.late += sorted(attempt.waiting)
        attempt.waiting.clear()


def _tell_to_end(attempt: Attempt, order: Order) -> None:
    patience = PAUSE_SECONDS if order == "admit" else STOP_SECONDS
    attempt.give_up_at = min(attempt.give_up_at or math.inf, time.monotonic() + patience)
    for host in attempt.waiting:
        attempt.links.send(host, {"type": "stop", "order": order})


def _conclude(attempt: Attempt) -> Outcome:
    return replace(
        _judge(attempt),
        lost=tuple(attempt.lost + attempt.late),
        is_silent=attempt.is_silent,
        is_asked=attempt.order not in (None, "admit"),
        is_admission=attempt.order == "admit",
    )


def _judge(attempt: Attempt) -> Outcome:
    """A host that vanished or refused is the cause; else one of the ranks is. One that is only late hides no cause."""
    outcome = judge(attempt.exits, attempt.order is not None, attempt.order == "preempt")
    if attempt.refusals and attempt.order is None:
        host, message, hint = attempt.refusals[0]
        return Outcome(USER_ERROR, f"host {host}: {message}" + (f" ({hint})" if hint else ""))
    if attempt.late and not attempt.lost and outcome.cause is not None:
        return replace(outcome, reason=f"{outcome.reason}; {_host_names(attempt.late)} did not report")
    if attempt.lost or attempt.late:
        return Outcome(FAILED, f"{_host_names(attempt.lost + attempt.late)} stopped answering")
    return outcome


def _host_names(hosts: Sequence[str]) -> str:
    return ", ".join(f"host {host}" for host in hosts)
