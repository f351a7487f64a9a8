"""What a fault did to a run, and what a run must be when it is over: found in records, folders and processes."""

import hashlib
import json
import math
import re
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from dragoman.launch.control.channel import RETURN_SECONDS
from dragoman.run.checkpoint_files import WEIGHTS, find_damage
from dragoman.run.reader import read_manifest
from fault_kinds import KINDS, Injected
from fault_live import LiveRun, Typed
from fault_records import Entry, longest_pause, num_missing

PAUSE_SECONDS = 1.0  # between two steps; more is no pace but a pause
ORPHAN_SECONDS = 75.0  # the far side of a session hears for a minute that nobody is there
KEPT_NAMES = re.compile(r"\.((controller|agent\.\w+)\.)?lock")
LOST_STATE = "exchange starts anew"
DEFECTS = ("Traceback (most recent call last)", "this is a defect of Dragoman")
# Ranks that are fewer for a while sum in another order; what that may change of the last dev loss.
LOSS_TOLERANCE = 0.005


@dataclass(frozen=True)
class Reference:
    """The same run without faults."""

    weights: Path
    dev_loss: float
    seconds: float


def is_settled(live: LiveRun, done: Injected) -> bool:
    """Whether the run is training again, or still."""
    if KINDS[done.fault.kind].ends_attempt:
        starts = live.records.starts_since(done.moment)
        return any(live.records.steps_from(start) for start in starts)
    return not live.is_disturbed and bool(live.records.steps_since(done.moment + done.fault.seconds + 0.3))


def fault_line(live: LiveRun, done: Injected, until: float, has_next: bool) -> dict[str, Any]:
    """`until`: when the run was training again. `has_next`: another fault came before that."""
    records = live.records
    starts = [start for start in records.starts_since(done.moment) if start.time <= until]
    before = [step for step in records.steps if step.time <= (starts[0].time if starts else until)]
    resumed_from = starts[-1].step if starts else None
    typed = [one for one in live.typed if one.ended is not None and done.moment < one.ended <= until]
    line: dict[str, Any] = {
        "kind": done.fault.kind,
        "host": done.host,
        "rank": done.rank,
        "detail": done.detail,
        "moment_seconds": round(done.moment - live.typed[0].began, 2),
        "seconds": done.fault.seconds,
        "is_hasty": done.fault.is_hasty,
        "is_followed_at_once": has_next,
        # A kill loses the records of the last second, but no checkpoint.
        "step_before": max(records.step_at(done.moment), done.checkpoint_before or 0),
        "checkpoint_before": done.checkpoint_before,
        "resumed_from": resumed_from,
        "lost_steps": max(0, before[-1].step - resumed_from) if resumed_from is not None and before else 0,
        "new_attempts": len(starts),
        "recovery_seconds": _recovery_seconds(live, done, until),
        "longest_pause_seconds": round(longest_pause(_steps_after(live, done, until))[0], 2),
        "lost_records": sum(num_missing(*pair) for pair in pairwise(_steps_after(live, done, until))),
        "typed_again": [{"exit_code": one.process.returncode, "because": one.last_words} for one in typed],
    }
    problems = [] if has_next or done.fault.is_hasty else _problems(live, done, line)
    return {**line, "problems": [*problems, *_defects(live, done.moment)]}


def _steps_after(live: LiveRun, done: Injected, until: float) -> list[Entry]:
    """With the last one before."""
    last = [step for step in live.records.steps if step.time <= done.moment][-1:]
    return [*last, *(step for step in live.records.steps_since(done.moment) if step.time <= until)]


def _recovery_seconds(live: LiveRun, done: Injected, until: float) -> float | None:
    """To the first finished step of the new attempt, or after the pause; None where no step came."""
    starts = [start for start in live.records.starts_since(done.moment) if start.time <= until]
    if starts:
        moments = [step.time for step in live.records.steps_from(starts[-1])]
        return round(moments[0] - done.moment, 2) if moments else None
    steps = _steps_after(live, done, until)
    seconds, end = longest_pause(steps)
    if not any(step.time > done.moment for step in steps):
        return None
    return round(end - done.moment if seconds > PAUSE_SECONDS else seconds, 2)


def _problems(live: LiveRun, done: Injected, line: dict[str, Any]) -> list[str]:
    kind = KINDS[done.fault.kind]
    problems: list[str] = []
    was_training = line["step_before"] > 0
    codes = [entry["exit_code"] for entry in line["typed_again"]]
    if was_training and kind.ends_attempt is False and (line["new_attempts"] or codes):
        problems.append("the attempt ended")
    if was_training and kind.exit_code is not None and kind.exit_code not in codes:
        problems.append(f"exit codes {codes}, not {kind.exit_code}")
    if was_training and kind.exit_code is not None and line["lost_steps"] and not _may_go_back(live, done):
        problems.append(f"told to leave, and lost {line['lost_steps']} steps")
    if live.has_min_hosts and codes and not kind.may_need_typing:
        problems.append("the command had to be typed again")
    resumed_from, saved = line["resumed_from"], line["checkpoint_before"]
    if resumed_from is not None and resumed_from < (saved or 0) and not _may_go_back(live, done):
        problems.append(f"went back to step {resumed_from}, behind the checkpoint of {saved}")
    # Before its first step a run writes no checkpoint, and owes no word about one.
    return problems + (_signs_missing(live, done) if was_training else [])


def _may_go_back(live: LiveRun, done: Injected) -> bool:
    """A checkpoint that is damaged, or lost with its host, has copies on the other hosts of its attempt, if any."""
    kind = KINDS[done.fault.kind]
    before = [event for event in live.records.starts_since(0.0) if event.time <= done.moment]
    members = before[-1].fields["detail"].get("hosts", []) if before else []
    others = {host for host in members if host in live.living} - {done.host}
    return (kind.needs_checkpoint or kind.loses_host) and not others


def _signs_missing(live: LiveRun, done: Injected) -> list[str]:
    """Words that the run owes its user."""
    said = " ".join([*live.said_since(done.moment), *live.records.warnings_since(done.moment)])
    owed = {
        "nan-gradient": "its update was left out",
        "freeze-worker": "no step has ended for",
        "out-of-memory": "out of GPU memory",
        "disk-full-checkpoint": "training goes on",
    }.get(done.fault.kind)
    problems = [f"it never said {owed!r}"] if owed is not None and owed not in said else []
    if done.fault.kind == "nan-gradient":
        bad = [step.step for step in live.records.steps_since(done.moment + 3.0) if not _is_sound(step.fields)]
        problems += [f"steps {bad[:5]} are not finite either"] if bad else []
    return problems


def _is_sound(fields: dict[str, Any]) -> bool:
    return math.isfinite(fields["loss"]) and math.isfinite(fields["gradient_norm"])


def _defects(live: LiveRun, moment: float) -> list[str]:
    lines = live.said_since(moment)
    found = [index for index, line in enumerate(lines) if any(mark in line for mark in DEFECTS)]
    return ["a traceback: " + " / ".join(lines[index : index + 30])[:3000] for index in found[:1]]


def run_line(
    live: LiveRun, injected: list[Injected], reference: Reference | None, orphan_seconds: float = ORPHAN_SECONDS
) -> dict[str, Any]:
    """After the last step, or where it was given up."""
    orphans = left_processes(live, orphan_seconds)
    leftovers = {host: found for host in live.living if (found := left_files(live, host))}
    line: dict[str, Any] = {
        "is_finished": live.is_finished,
        "seconds": round(time.time() - live.typed[0].began, 1),
        "reference_seconds": None if reference is None else reference.seconds,
        "num_typed": len(live.typed),
        "exit_codes": [one.process.poll() for one in live.typed],
        "hosts_left": live.living,
        "last_hosts": last_members(live) if live.is_finished else [],
        "world_sizes": [start.fields["detail"].get("world_size") for start in live.records.starts_since(0.0)],
        "longest_silence_seconds": round(longest_silence(live.typed), 1),
        "orphans": orphans,
        "leftovers": leftovers,
    }
    problems = [] if live.is_finished else ["it did not reach its last step"]
    problems += [f"processes left: {orphans}"] if orphans else []
    problems += [f"temporary files left: {leftovers}"] if leftovers else []
    if live.is_finished:
        problems += _folder_problems(live)
        weights, wrong = compare(live, injected, reference)
        line, problems = {**line, "weights": weights}, problems + wrong
    return {**line, "problems": problems}


def longest_silence(typed: list[Typed]) -> float:
    return max((one.longest_silence for one in typed), default=0.0)


def left_processes(live: LiveRun, patience_seconds: float) -> list[str]:
    """What still runs anywhere a while after the end, cables mended: who was cut off must have noticed by then."""
    live.end_disturbances()
    for host in live.cut_off:
        live.hosts.mend_link(host)
    deadline = time.time() + patience_seconds + _calling_seconds(live)
    while (left := live.hosts.processes()) and time.time() < deadline:
        time.sleep(0.5)
    return sorted(words[:120] for words in left.values())


def _calling_seconds(live: LiveRun) -> float:
    """Who was cut off calls the controller for a while; where that host is dead, nobody tells it that the run is over."""
    alive = {*live.living, *live.cut_off}
    return RETURN_SECONDS if live.cut_off and live.hosts.names[0] not in alive else 0.0


def left_files(live: LiveRun, host: str) -> list[str]:
    folder = live.hosts.run_folder(host).path
    hidden = (path for path in folder.rglob(".*") if not KEPT_NAMES.fullmatch(path.name))
    return sorted(str(path.relative_to(folder)) for path in hidden)


def _folder_problems(live: LiveRun) -> list[str]:
    """Every host of the last attempt has the same last checkpoint, whole."""
    problems: list[str] = []
    digests: set[str] = set()
    for host in last_members(live):
        folder = live.hosts.run_folder(host)
        path = folder.checkpoints_path / "last"
        damage = find_damage(path) if path.exists() else "missing"
        if folder.pointed_step("last") != live.settings.max_steps or damage is not None:
            problems.append(f"host {host}: last is step {folder.pointed_step('last')}, {damage or 'whole'}")
        else:
            digests.add(hashlib.sha256((path / WEIGHTS).read_bytes()).hexdigest())
    problems += ["the hosts have different weights"] if len(digests) > 1 else []
    return problems + _divided_steps(live)


def last_members(live: LiveRun) -> list[str]:
    """Hosts of the last attempt; one whose link was cut for a while may have come back too late for it."""
    manifest = read_manifest(live.hosts.run_folder(live.first))
    return [host.name for host in manifest.hosts if host.name in live.living]


def _divided_steps(live: LiveRun) -> list[str]:
    """Steps of the last attempt at which hosts saved different weights: replicas that drifted apart unnoticed."""
    first_step = live.records.starts_since(0.0)[-1].step
    digests: dict[int, set[str]] = {}
    for host in last_members(live):
        folder = live.hosts.run_folder(host)
        for step in folder.step_checkpoints():
            if step > first_step:
                data = (folder.step_checkpoint(step) / WEIGHTS).read_bytes()
                digests.setdefault(step, set()).add(hashlib.sha256(data).hexdigest())
    divided = sorted(step for step, found in digests.items() if len(found) > 1)
    return [f"the hosts saved different weights at steps {divided}"] if divided else []


def compare(live: LiveRun, injected: list[Injected], reference: Reference | None) -> tuple[str, list[str]]:
    """One sentence on the weights against those of the run without faults, and what is wrong with them."""
    if reference is None:
        return "no reference", []
    ours = live.hosts.run_folder(live.first).checkpoints_path / "last" / WEIGHTS
    difference = largest_difference(ours, reference.weights)
    sentence = (
        "equal bit for bit" if ours.read_bytes() == reference.weights.read_bytes() else f"off by {difference:.2g}"
    )
    excuse = _excuse(live, injected)
    if excuse is None:
        return sentence, [] if sentence.startswith("equal") else [f"weights {sentence}"]
    if live.settings.method != "dense" or "left out" in excuse:
        return f"{sentence}, not promised: {excuse}", []
    loss = dev_loss(live)
    off = abs(loss - reference.dev_loss) / reference.dev_loss
    sentence = f"{sentence}, dev loss off by {off:.2%}: {excuse}"
    return sentence, [] if off <= LOSS_TOLERANCE else [f"weights {sentence}"]


def _excuse(live: LiveRun, injected: list[Injected]) -> str | None:
    """Why the weights need not be those of the reference; None where they must be."""
    left_out = [done for done in injected if KINDS[done.fault.kind].changes_weights]
    if left_out:
        return "an update was left out"
    sizes = {start.fields["detail"].get("world_size") for start in live.records.starts_since(0.0)}
    if sizes != {live.settings.num_hosts * live.settings.num_workers}:
        return f"{sorted(sizes)} ranks"
    lost = [text for text in live.records.warnings_since(0.0) if LOST_STATE in text]
    return "a rank lost the state of its exchange" if lost else None


def largest_difference(one: Path, other: Path) -> float:
    ours, theirs = load_file(one), load_file(other)
    return max(float(np.abs(ours[name].astype(np.float64) - theirs[name]).max()) for name in theirs)


def dev_loss(live: LiveRun) -> float:
    """Of the last evaluation."""
    lines = live.hosts.run_folder(live.first).evals_path.read_text(encoding="utf-8").splitlines()
    return float(json.loads(lines[-1])["loss"])
