"""Looks at a run that goes on, from a process of its own: `python -m dragoman.diagnose.live RUN`.

Prints one JSON line for every finding that was not found before. Ends when its input does: with whoever started it.
"""

import dataclasses
import json
import os
import select
import sys
import time
from pathlib import Path

from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.rules import find
from dragoman.errors import DragomanError
from dragoman.run.reader import RunRecord, read_run

LEAST_SECONDS = 15.0
# Looking takes longer the longer the run is: so much rest per second of it keeps it below half a percent of a core.
REST = 200.0


def known_codes(run: RunRecord) -> set[str]:
    """What was told before, by this attempt or an earlier one."""
    return {str(event.detail.get("code")) for event in run.events_of("finding")}


def new_findings(run: RunRecord, told: set[str]) -> list[Finding]:
    return [finding for finding in find(gather_facts(run)) if finding.code not in told | known_codes(run)]


def main(path: Path) -> None:
    os.nice(19)
    told: set[str] = set()
    while True:
        start = time.process_time()
        try:
            findings = new_findings(read_run(path), told)
        except DragomanError:
            return  # the folder is gone
        for finding in findings:
            told.add(finding.code)
            sys.stdout.write(json.dumps(dataclasses.asdict(finding)) + "\n")
        sys.stdout.flush()
        rest = max(LEAST_SECONDS, REST * (time.process_time() - start))
        if select.select([sys.stdin], [], [], rest)[0]:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
