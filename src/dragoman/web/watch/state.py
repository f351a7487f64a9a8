"""How a run stands, in a word and a sentence: from its newest records and from what its machine says of it."""

from dataclasses import dataclass
from typing import Literal

from dragoman.run.figures import REASONS
from dragoman.units import format_seconds
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.vitals import Vitals

Kind = Literal["waiting", "starting", "running", "silent", "finished", "stopped", "crashed", "gone", "unreachable"]
ENDED: tuple[Kind, ...] = ("finished", "stopped", "crashed")
STOPPED_CODES = (130, 143)  # by a person, by a machine
QUIET_SECONDS = 20.0  # hosts are sampled once a second: so long without a word is long
QUIET_STEPS = 4


@dataclass(frozen=True, slots=True)
class State:
    """`word` stands on the badge; `sentence` may be empty."""

    kind: Kind
    word: str
    sentence: str = ""


def state_of(live: LiveRun, vitals: Vitals) -> State:
    if vitals.problem:
        return State("unreachable", "No connection", vitals.problem)
    if not vitals.is_there:
        if live.was_there:
            return State("gone", "Gone", "The run folder is not there any more.")
        return State(
            "waiting", "Waiting", "There is no such folder yet. This page shows the run as soon as it is there."
        )
    if live.manifest is None:
        return _before_manifest(live, vitals)
    ending = live.ending
    if ending is not None and not _is_next_attempt(live, vitals):
        reason = str(ending.detail.get("reason", ""))
        sentence = _capital(REASONS.get(reason, reason))
        return (
            State("finished", "Finished", sentence)
            if ending.kind == "finished"
            else State("stopped", "Stopped", sentence)
        )
    return _without_ending(live, vitals)


def _before_manifest(live: LiveRun, vitals: Vitals) -> State:
    if live.problem:
        return State("waiting", "Unreadable", live.problem)
    return State(
        "starting", "Starting", _what_it_waits_for(live, vitals) or "The folder is there, its manifest is not yet."
    )


def _without_ending(live: LiveRun, vitals: Vitals) -> State:
    age = max(0.0, vitals.now - live.heard) if live.heard else 0.0
    limit = max(QUIET_SECONDS, QUIET_STEPS * (live.recent_step_seconds or 0.0))
    is_fresh = bool(live.heard) and age < limit
    is_alive = bool(vitals.is_held) or bool(vitals.is_controlled)
    if not is_alive and vitals.control_state == "ended" and not is_fresh:
        kind = "stopped" if vitals.exit_code in STOPPED_CODES else "crashed"
        return State(kind, kind.capitalize(), _capital(vitals.reason))
    if is_alive or is_fresh:
        last = live.last
        if last is None or last.attempt < live.attempt or vitals.control_state == "starting":
            return State("starting", "Starting", _what_it_waits_for(live, vitals))
        if not is_fresh:
            return State(
                "silent", "Silent", f"Its process is there, but nothing was heard of it for {format_seconds(age)}."
            )
        return State("running", "Running", _between_steps(vitals.now - last.time, limit))
    heard = f"nothing was heard of it for {format_seconds(age)}" if live.heard else "nothing was ever recorded"
    if vitals.is_held is None and vitals.is_controlled is None:
        return State("silent", "Silent", f"{_capital(heard)} Whether its process lives cannot be seen from here.")
    return State(
        "crashed",
        "Crashed",
        f"No process has this run, and {heard}. The same command goes on from the last checkpoint.",
    )


def _is_next_attempt(live: LiveRun, vitals: Vitals) -> bool:
    """The latest record is an end, but the run was started again and has not written yet."""
    return bool(vitals.is_controlled) and vitals.control_state != "ended" and vitals.control_attempt > live.attempt


def _what_it_waits_for(live: LiveRun, vitals: Vitals) -> str:
    if vitals.question:
        return f"It asks in the terminal that started it: {vitals.question}"
    return live.last_log


def _between_steps(seconds: float, limit: float) -> str:
    return f"No step for {format_seconds(seconds)}: it evaluates, saves or waits." if seconds > limit else ""


def _capital(text: str) -> str:
    text = text.strip()
    return (text[:1].upper() + text[1:]).rstrip(".") + "." if text else ""
