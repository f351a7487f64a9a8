"""Hosts without machines: an ssh client that runs the command here, with a home folder and addresses per host.

`DRAGOMAN_SSH` is this file under Python. It ignores options and takes TARGET and the command, as ssh does. A host of
the test is a folder below `STAND_IN`; files in it change what the host says about itself.
"""

import json
import os
import sys
from pathlib import Path

import pytest

# Read by every Python that the stand-in starts: what makes two hosts of one machine look different.
SITE = """
import json, os, sys
from pathlib import Path

changes = Path(os.environ["HOME"]) / "facts.json"
if changes.exists() and "dragoman.commands.on_host" in sys.orig_argv:
    try:
        from dragoman.launch.hosts import facts
    except ImportError:
        given = {}
    else:
        given = json.loads(changes.read_text())
    for name, value in given.items():
        setattr(facts, name, lambda value=value: value)
"""


def stand_in_hosts(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Make homes for these hosts and the client that enters them; addresses 127.0.0.1, .2 and so on are theirs."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    for number, name in enumerate(names, start=1):
        home = folder / name
        home.mkdir()
        card = {"interface": "lo", "address": f"127.0.0.{number}", "netmask": "255.0.0.0"}
        facts = {"machine_identity": [name], "list_addresses": [card], "count_gpus": 0, "ssh_address": None}
        (home / "facts.json").write_text(json.dumps(facts))
    monkeypatch.setenv("DRAGOMAN_SSH", f"{sys.executable} {Path(__file__)}")
    monkeypatch.setenv("STAND_IN", str(folder))
    return folder


def main(arguments: list[str]) -> None:
    words = list(arguments)
    while words[0].startswith("-"):
        del words[:2]
    target, command = words
    folder = Path(os.environ["STAND_IN"])
    home = folder / target.rpartition("@")[2]
    complaint = home / "complaint"
    if not home.is_dir() or complaint.exists():
        default = f"ssh: Could not resolve hostname {target}: Name or service not known"
        sys.stderr.write((complaint.read_text() if complaint.exists() else default) + "\n")
        sys.exit(255)
    os.chdir(home)
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": path}
    os.execvpe("sh", ["sh", "-c", command], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
