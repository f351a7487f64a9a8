"""Emulated hosts for a user without rights, and for one who may not even have them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# All that a lab needs of the package; it uses nothing but the standard library, so another user can have a copy.
PARTS = ("__init__.py", "errors.py", "launch/__init__.py", "launch/lab")
# What setpriv itself starts may still be read with the rights of root: `env` no longer has them.
USER = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "env"]
PROGRAM = """
import sys
from dragoman.launch.lab.foreground import run_in_lab
from dragoman.launch.lab.lab import open_lab
from dragoman.launch.lab.link import parse_link
with open_lab(2, parse_link("100mbit"), delay_seconds=float(sys.argv[2])) as lab:
    assert not lab.plan.has_sshd
    assert not lab.notes, lab.notes
    print(lab.folder, flush=True)
    code = run_in_lab(lab, ["sh", "-c", sys.argv[1]])
assert not lab.folder.exists()
sys.exit(code)
"""
SCRIPT = """
set -e
echo on $(hostname), $(ssh b hostname), $($DRAGOMAN_SSH -p 22 -o BatchMode=yes user@b 'echo $HOME; pwd' | uniq | wc -l)
echo there > file
$DRAGOMAN_SSH b "cat $PWD/file; echo changed > $PWD/file"
cat file
$DRAGOMAN_SSH b "$PYTHON link_probe.py serve 5001 > /dev/null 2>&1 &"
until $PYTHON link_probe.py round-trip b 5001 2> /dev/null; do sleep 0.1; done
echo $(for i in 1 2 3; do $PYTHON link_probe.py rate b 5001 1; done)
$DRAGOMAN_SSH z hostname || echo ended with $?
exit 5
"""


@pytest.fixture
def home() -> Generator[Path]:
    """A user's home folder, with the package and a link to measure with; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="rootless-") as name:
        folder = Path(name)
        for part in PARTS:
            source, copy = ROOT / "src" / "dragoman" / part, folder / "package" / "dragoman" / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
        shutil.copy(Path(__file__).parent / "link_probe.py", folder)
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, 12345, 12345)
        yield folder


@pytest.fixture
def run_as_user(home, lacking) -> Callable[..., subprocess.CompletedProcess[str]]:
    user = USER if os.geteuid() == 0 else []
    pythons = [sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"]
    is_new = "import sys; sys.exit(sys.version_info < (3, 11))"
    usable = [each for each in pythons if subprocess.run([*user, each, "-c", is_new], stderr=-3).returncode == 0]
    if not usable:
        lacking("network", "no Python of 3.11 or newer that another user may run")
    environment = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(home / "package"), "PYTHON": usable[0]}

    def run(*words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*user, *before, usable[0], "-c", PROGRAM, *words]
        return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=60)

    return run


def is_open_to_all(device: str) -> bool:
    return Path(device).exists() and Path(device).stat().st_mode & 0o006 == 0o006


@pytest.mark.parametrize("delay_seconds", [0, 0.005])
def test_a_user_without_rights_has_the_same_hosts(run_as_user, lacking, delay_seconds):
    done = run_as_user(SCRIPT, str(delay_seconds))
    if "--delay needs /dev/net/tun, which is missing or closed to this user" in done.stderr:
        assert delay_seconds and not is_open_to_all("/dev/net/tun")  # as some machines have it
        return
    unavailable = [line for line in done.stderr.splitlines() if "LabUnavailable" in line]
    if unavailable:
        lacking("network", unavailable[-1])
    _, names, seen, kept, round_trip_ms, megabits, ended = done.stdout.splitlines()
    assert names == "on a, b, 1"
    assert (seen, kept) == ("there", "there")
    assert 2000 * delay_seconds <= float(round_trip_ms) < 2000 * delay_seconds + 5
    assert 85 < max(map(float, megabits.split())) < 102
    assert ended == "ended with 255"
    assert done.returncode == 5


def test_a_user_who_may_not_is_told_the_line_to_type(run_as_user):
    done = run_as_user("true", "0", before=("unshare", "--user"))  # in there nobody is anybody
    assert done.returncode == 1
    assert "user namespaces are not allowed here without root (unshare: Operation not permitted)" in done.stderr
    assert "as root: sudo /" in done.stderr


@pytest.mark.parametrize(("options", "outcome"), [([], "skipped"), (["--require=network"], "failed")])
def test_what_a_machine_cannot_is_skipped_unless_it_is_required(options, outcome, tmp_path):
    test = "tests/network/test_lab.py::test_a_host_that_is_not_there"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/sub", test]
    done = subprocess.run(
        ["unshare", "--user", *command, *options], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert f"1 {outcome}" in done.stdout
    assert "user namespaces are not allowed here without root" in done.stdout
