"""Doctor's measurements: ranks of this machine, or of several hosts, started as a run starts them and followed."""

import json
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.commands.doctor_round import Measurements, Round, Say, Wish
from dragoman.errors import DragomanError
from dragoman.train.profile_task import MARK, RANK_MODULE, ProfileTask

if TYPE_CHECKING:
    from dragoman.diagnose.preflight.checks import Check
    from dragoman.launch.hosts.members import Team
    from dragoman.launch.hosts.network import Measured
    from dragoman.launch.hosts.session import HostSession

PATIENCE_SECONDS = 300.0


def measure_here(wish: Wish, num_workers: int, found: Round) -> Measurements | None:
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


def team_of(answers: "Mapping[HostSession, Mapping[str, Any]]", network: "Measured", is_first_here: bool) -> "Team":
    from dragoman.launch.hosts.assembly import members_of
    from dragoman.launch.hosts.members import Team

    members = members_of(answers, network, lambda _: None)
    token = secrets.token_hex(8)
    run = f"~/.cache/dragoman/doctor-{token}"
    return Team(members, network.candidate.label, network.slowest, "", run, "", is_first_here)


def measure_hosts(
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
