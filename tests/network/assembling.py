"""A program for emulated hosts: assemble a team and print it, or what is wrong, as JSON."""

import dataclasses
import json
import sys
import time
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.launch.hosts.assembly import assemble
from dragoman.launch.hosts.hosts import read_hosts


def main(hosts: str, options: str) -> None:
    given = json.loads(options)
    if "local_data" in given:
        given["local_data"] = Path(given["local_data"])
    said: list[str] = []
    start = time.monotonic()
    try:
        team = assemble(read_hosts(hosts), "data", "runs/x", say=said.append, **given)
        outcome = {"team": dataclasses.asdict(team)}
    except DragomanError as error:
        outcome = {"error": error.message, "hint": error.hint}
    print(json.dumps({**outcome, "said": said, "seconds": time.monotonic() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
