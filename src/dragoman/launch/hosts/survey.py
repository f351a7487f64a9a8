"""Is every host fit for the run? Asks all of them side by side and collects one line per thing that is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.hosts.package import versions
from dragoman.launch.hosts.session import HostSession, problem_line, side_by_side
from dragoman.units import format_bytes

SETUP = "`dragoman setup --hosts ...` installs the same everywhere"

Answer = Mapping[str, Any]


def _no_problems() -> list[str]:
    return []


@dataclass
class Problems:
    """One line per host and thing that is wrong, to be raised all at once."""

    lines: list[str] = field(default_factory=_no_problems)

    def add(self, name: str, problem: str, remedy: str) -> None:
        self.lines.append(f"{name}: {problem}; {remedy}")

    def raise_any(self) -> None:
        if self.lines:
            text = "\n  ".join(["not every host is ready", *self.lines])
            raise DragomanError(text, "mend this and give the same command again")


def ask_all(
    sessions: Sequence[HostSession], op: str, problems: Problems, **arguments: Any
) -> dict[HostSession, dict[str, Any]]:
    """The answers of those that gave one; the others become problems."""
    asked = [lambda session=session: session.call(op, **arguments) for session in sessions]
    found: dict[HostSession, dict[str, Any]] = {}
    for session, answer in zip(sessions, side_by_side(asked), strict=True):
        if isinstance(answer, DragomanError):
            problems.lines.append(problem_line(answer))
        else:
            found[session] = answer
    return found


def survey_hosts(sessions: Sequence[HostSession], problems: Problems) -> dict[HostSession, dict[str, Any]]:
    """Facts of the hosts that answer and run what we run."""
    facts = ask_all(sessions, "facts", problems)
    _check_twins(facts, problems)
    return {session: answer for session, answer in facts.items() if _check_versions(session, facts, problems)}


def _check_twins(facts: Mapping[HostSession, Answer], problems: Problems) -> None:
    seen: dict[tuple[str, ...], str] = {}
    for session, answer in facts.items():
        first = seen.setdefault(tuple(answer["identity"]), session.host.name)
        if first != session.host.name:
            problems.add(session.host.name, f"is the same machine as {first}", f"name it once, as {first}:2")


def _check_versions(session: HostSession, facts: Mapping[HostSession, Answer], problems: Problems) -> bool:
    """Dragoman must be ours; torch and Python must be those of the first host, for the caller trains nothing."""
    name = session.host.name
    ours, there = versions(), facts[session]["versions"]
    first = next(iter(facts))
    wanted = facts[first]["versions"]
    before = len(problems.lines)
    if there["dragoman"] != ours["dragoman"]:
        problems.add(name, f"has Dragoman {there['dragoman']}, here is {ours['dragoman']}", SETUP)
    elif there["code"] != ours["code"]:
        problems.add(name, f"has other code of Dragoman {there['dragoman']} than this machine", SETUP)
    if not there["torch"]:
        problems.add(name, "has no torch", SETUP)
    elif wanted["torch"] and there["torch"] != wanted["torch"]:
        problems.add(name, f"has torch {there['torch']}, {first.host.name} has {wanted['torch']}", SETUP)
    if there["python"] != wanted["python"]:
        problems.add(name, f"has Python {there['python']}, {first.host.name} has {wanted['python']}", SETUP)
    return len(problems.lines) == before


def check_run_folders(folders: Mapping[HostSession, Answer], needs_bytes: int, problems: Problems) -> None:
    """Room for the run, and leave to write it."""
    for session, answer in folders.items():
        run = answer["run"]
        if not run["is_writable"]:
            problems.add(session.host.name, f"may not write to {run['path']}", "name another folder with --run")
        elif run["free_bytes"] < needs_bytes:
            problem = f"has {format_bytes(run['free_bytes'])} free for {run['path']}, {format_bytes(needs_bytes)} are "
            problems.add(session.host.name, f"{problem}needed", "make room, or name another disk with --run")


def check_data(folders: Mapping[HostSession, Answer], wanted: str, origin: str, problems: Problems) -> None:
    """The same bytes everywhere: by the manifest's fingerprint and the size of every file."""
    for session, answer in folders.items():
        data = answer["data"]
        if data["problem"]:
            problems.add(session.host.name, data["problem"], "--push-data copies it there from this machine")
        elif data["fingerprint"] != wanted:
            problem = f"has other data in {data['path']} than {origin}"
            problems.add(session.host.name, problem, "--push-data replaces it by that of this machine")
