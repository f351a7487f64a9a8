"""One run from its first command to its last step, with its faults; and the same without any, once."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.run.checkpoint_files import WEIGHTS
from fault_checks import Reference, dev_loss, fault_line, is_settled, run_line
from fault_hosts import open_fault_hosts
from fault_kinds import KINDS, Fault, Injected
from fault_live import GaveUpError, LiveRun, Settings, TooLateError, write_output
from fault_plan import RunPlan

BEGIN_SECONDS = 120.0
SETTLE_SECONDS = 180.0
END_SECONDS = 180.0
KEPT_PATTERNS = ("*.jsonl", "*.log", "*.out", "*.json", "*.txt")

Line = dict[str, Any]


@cache
def has_min_hosts() -> bool:
    """Whether this Dragoman goes on without a host that is gone."""
    command = [sys.executable, "-m", "dragoman", "train", "--help"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
    return "--min-hosts" in told.stdout


def lines_of_run(
    plan: RunPlan, work: Path, data: Path, spoil: Callable[[LiveRun], None] | None = None
) -> Generator[Line]:
    """A line for each fault as soon as the run trains again, then one for the run. `spoil` tries the checks out: what
    it does to a run that is over must show in one more line."""
    reference = reference_of(plan.settings, work, data)
    with open_fault_hosts(plan.settings.num_hosts, work) as hosts:
        live = LiveRun(hosts, plan.settings, data, has_min_hosts())
        injected: list[Injected] = []
        problem = ""
        live.type_command()
        try:
            for group in plan.groups():
                done = inject_group(live, group)
                injected += done
                yield from settle(live, done)
            live.wait(lambda: False, END_SECONDS, "the last step")
        except GaveUpError as error:
            problem = str(error)
        line = run_line(live, injected, reference)
        line["problems"] += [problem] if problem else []
        keep(live, work / "runs" / f"{plan.number:04d}", bool(line["problems"]))
        yield {"settings": asdict(plan.settings), "num_faults": len(plan.faults), **line}
        if spoil is not None:
            spoil(live)
            yield run_line(live, injected, reference, orphan_seconds=1.0)


def inject_group(live: LiveRun, faults: list[Fault]) -> list[Injected]:
    """Those that came before the last step."""
    done: list[Injected] = []
    for fault in faults:
        if not fault.is_hasty:
            live.wait(lambda at_step=fault.at_step: live.records.newest_step >= at_step, BEGIN_SECONDS, "a step")
        until = time.time() + fault.delay_seconds
        live.wait(lambda until=until: time.time() >= until, BEGIN_SECONDS, "the moment")
        if live.is_finished:
            break
        with contextlib.suppress(TooLateError):
            done.append(KINDS[fault.kind].inject(live, fault))
    return done


def settle(live: LiveRun, done: list[Injected]) -> Generator[Line]:
    """Wait until the run trains again; a line for each fault, also where it does not."""
    limit = SETTLE_SECONDS + sum(one.fault.seconds for one in done)
    problem: GaveUpError | None = None
    try:
        live.wait(lambda: all(is_settled(live, one) for one in done), limit, "training again")
    except GaveUpError as error:
        problem = error
    now = time.time()
    for number, one in enumerate(done):
        line = fault_line(live, one, now, number + 1 < len(done))
        line["problems"] += [str(problem)] if problem is not None else []
        yield line
    if problem is not None:
        raise problem


def reference_of(settings: Settings, work: Path, data: Path) -> Reference:
    """The weights of the run without faults; how often it saves does not matter to them."""
    name = f"{settings.method}-{settings.num_hosts}x{settings.num_workers}-{settings.max_steps}"
    folder = work / "references" / name
    if not (folder / "reference.json").exists():
        print(f"reference {name}", file=sys.stderr)
        _make_reference(settings, work, data, folder)
    told = json.loads((folder / "reference.json").read_text())
    return Reference(folder / WEIGHTS, told["dev_loss"], told["seconds"])


def _make_reference(settings: Settings, work: Path, data: Path, folder: Path) -> None:
    with open_fault_hosts(settings.num_hosts, work) as hosts:
        live = LiveRun(hosts, settings, data, has_min_hosts())
        live.type_command()
        live.wait(lambda: len(live.typed) > 1, END_SECONDS, "the last step")
        if len(live.typed) > 1:
            raise RuntimeError(f"a run without faults failed: {live.typed[0].last_words}")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(hosts.run_folder(live.first).checkpoints_path / "last" / WEIGHTS, folder / WEIGHTS)
        told = {"dev_loss": dev_loss(live), "seconds": round(time.time() - live.typed[0].began, 1)}
        (folder / "reference.json").write_text(json.dumps(told))


def keep(live: LiveRun, folder: Path, has_problems: bool) -> None:
    """What was said, and where something is wrong the records of every host: they go with the hosts."""
    shutil.rmtree(folder, ignore_errors=True)
    write_output(live.typed, folder / "output.txt")
    for host in live.hosts.names if has_problems else ():
        (folder / host).mkdir()
        for pattern in KEPT_PATTERNS:
            for path in live.hosts.run_folder(host).path.glob(pattern):
                shutil.copyfile(path, folder / host / path.name)
