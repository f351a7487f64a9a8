"""The table of campaigns of faults, as Markdown: python benchmarks/fault_table.py FILE [FILE ...]."""

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fault_kinds import KINDS

Line = dict[str, Any]
HEAD = (
    "| fault | faults | alone | seconds until a step ends: median, longest | steps lost, at most | typed again | problems |",
    "|---|---|---|---|---|---|---|",
)


def main() -> None:
    texts = [text for path in sys.argv[1:] for text in Path(path).read_text().splitlines()]
    lines: list[Line] = [json.loads(text) for text in texts]
    faults, runs = ([line for line in lines if line.get("line") == kind] for kind in ("fault", "run"))
    print("\n".join([*HEAD, *table(faults)]), end="\n\n")
    print("\n".join(totals(faults, runs)))


def table(faults: Sequence[Line]) -> list[str]:
    by_kind: defaultdict[str, list[Line]] = defaultdict(list)
    for fault in faults:
        by_kind[fault["kind"]].append(fault)
    return [row(kind, by_kind[kind]) for kind in KINDS if kind in by_kind]


def row(kind: str, faults: Sequence[Line]) -> str:
    """Times are those of faults that were alone: two at once recover once."""
    alone = [fault for fault in faults if not fault["is_hasty"] and not fault["is_followed_at_once"]]
    # A cable that is out for a minute cannot carry a step before: what counts begins when it is back.
    seconds = [fault["recovery_seconds"] for fault in alone if fault["recovery_seconds"] is not None]
    times = f"{statistics.median(seconds):.1f}, {max(seconds):.1f}" if seconds else ""
    typed = sum(bool(fault["typed_again"]) for fault in faults)
    problems = sum(bool(fault["problems"]) for fault in faults)
    lost = max((fault["lost_steps"] for fault in faults), default=0)
    return f"| `{kind}` | {len(faults)} | {len(alone)} | {times} | {lost} | {typed} | {problems} |"


def totals(faults: Sequence[Line], runs: Sequence[Line]) -> list[str]:
    weights = [run.get("weights", "") for run in runs]
    return [
        f"- {len(faults)} faults in {len(runs)} runs; {sum(run['is_finished'] for run in runs)} reached their last step",
        f"- weights: {sum(text == 'equal bit for bit' for text in weights)} runs equal bit for bit to the one without faults, "
        f"{sum(text != 'equal bit for bit' for text in weights)} where that is not promised",
        f"- processes left: {sum(bool(run['orphans']) for run in runs)} runs; files: {sum(bool(run['leftovers']) for run in runs)}",
        f"- runs with problems: {sum(bool(run['problems']) for run in runs)}",
        f"- methods: {', '.join(sorted({run['settings']['method'] for run in runs}))}",
    ]


if __name__ == "__main__":
    main()
