"""Faults at random moments in real runs on emulated hosts, and whether the runs come through.

    python benchmarks/faults.py --out FILE [--faults 200] [--kinds kill-worker,cut-60s] [--seed 1] [--hosts 2,3]
                                                                                                      (root, Linux)

A campaign is a list of runs, each with two to five faults, that follows from the seed. One JSON line is appended per
fault as soon as the run trains again, and one per run with the checks at its end: last step, weights against the same
run without faults, processes and files left. The same command again goes on with what is missing; a run that was half
done is done anew. What runs said is kept in `FILE.work`, with the references: remove it when the code has changed.
Exit code 1 where a line has problems.
"""

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from dragoman.run.folder import lock_file
from fault_kinds import KINDS
from fault_plan import RunPlan, plan_runs
from fault_run import lines_of_run
from fault_settings import prepare_data

Line = dict[str, Any]
INTERRUPTED = 130


def main() -> int:
    options = read_options()
    signal.signal(signal.SIGTERM, end_by_signal)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
    kinds, host_counts = options.kinds.split(","), [int(number) for number in options.hosts.split(",")]
    unknown = set(kinds) - set(KINDS)
    if unknown:
        sys.exit(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    campaign = {"campaign": {"seed": options.seed, "kinds": kinds, "hosts": host_counts}}
    work = options.work or options.out.with_name(f"{options.out.name}.work")
    plans = list(plan_runs(options.seed, kinds, host_counts, options.faults))
    work.mkdir(parents=True, exist_ok=True)
    held = lock_file(work / ".lock", 0.0)
    if held is None:
        sys.exit(f"another campaign works in {work}")
    data = prepare_data(work.resolve() / "text")
    lines = go_on(options.out, campaign, plans)
    done = {line["run"] for line in lines if line.get("line") == "run"}
    try:
        for plan in plans:
            if plan.number not in done:
                lines += try_run(plan, work.resolve(), data, options.out)
    except KeyboardInterrupt:
        print("stopped: the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    print(summary(lines), file=sys.stderr)
    return 1 if any(line.get("problems") for line in lines) else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--faults", type=int, default=200, help="faults in all")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", default="2,3", help="numbers of hosts, in turn")
    parser.add_argument("--work", type=Path, help="folder for data, references and outputs (default: FILE.work)")
    return parser.parse_args()


def end_by_signal(number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C: the hosts are taken down on the way out."""
    sys.exit(128 + number)


def go_on(path: Path, campaign: Line, plans: list[RunPlan]) -> list[Line]:
    """The lines of runs that are done; those of half-done ones are taken out of the file."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    if lines and lines[0] != campaign:
        sys.exit(f"{path} is another campaign: {json.dumps(lines[0])}; name another file with --out")
    num_faults = {plan.number: len(plan.faults) for plan in plans}
    done = {
        line["run"]
        for line in lines
        if line.get("line") == "run" and line["num_faults"] == num_faults.get(line["run"], line["num_faults"])
    }
    kept = [line for line in lines if line.get("run") in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text("".join(json.dumps(line) + "\n" for line in [campaign, *kept]))
    fresh.replace(path)
    return kept


def try_run(plan: RunPlan, work: Path, data: Path, out: Path) -> list[Line]:
    lines: list[Line] = []
    for number, found in enumerate(lines_of_run(plan, work, data)):
        is_fault = "kind" in found
        place = {"line": "fault", "fault": number, "settings": asdict(plan.settings)} if is_fault else {"line": "run"}
        line = {"run": plan.number, **place, **found}
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(progress(line), file=sys.stderr)
        lines.append(line)
    return lines


def progress(line: Line) -> str:
    problems = f"; PROBLEMS: {'; '.join(line['problems'])[:400]}" if line["problems"] else ""
    if line["line"] == "run":
        weights = line.get("weights", "not finished")
        return f"run {line['run']}: {line['seconds']} s, typed {line['num_typed']} times, weights {weights}{problems}"
    settings = line["settings"]
    where = f"{settings['method']} {settings['num_hosts']}x{settings['num_workers']}"
    went = f"step {line['step_before']}, on from {line['resumed_from']}, lost {line['lost_steps']}"
    typed = f", typed again {len(line['typed_again'])} times" if line["typed_again"] else ""
    return (
        f"run {line['run']} ({where}): {line['kind']} on {line['host']}: {went}, "
        f"{line['recovery_seconds']} s{typed}{problems}"
    )


def summary(lines: list[Line]) -> str:
    faults = [line for line in lines if line.get("line") == "fault"]
    runs = [line for line in lines if line.get("line") == "run"]
    num_bad = sum(bool(line["problems"]) for line in lines)
    return f"{len(faults)} faults in {len(runs)} runs, {num_bad} lines with problems"


if __name__ == "__main__":
    sys.exit(main())
