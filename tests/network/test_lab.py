"""Emulated hosts: names, disks, cores, commands with a terminal, and that nothing is left of them."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.launch.lab.lab import open_lab
from dragoman.launch.lab.link import parse_link
from dragoman.launch.lab.requirements import LabUnavailable

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]


@pytest.fixture
def here(tmp_path, monkeypatch, lacking) -> Path:
    """A folder to type `dragoman lab` in, on a machine that can have one."""
    monkeypatch.chdir(tmp_path)
    try:
        with open_lab(1, parse_link("unlimited")):
            pass
    except LabUnavailable as error:
        lacking("network", str(error))
    return tmp_path


def typed(command: str) -> subprocess.Popen[str]:
    """A command at a terminal; what is typed goes to its stdin."""
    words = ["script", "--quiet", "--return", "--flush", "--command", command, os.devnull]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_hosts_know_each_other_by_name_and_enter_each_other(lab_hosts):
    hosts = lab_hosts(3, "100mbit")
    for name in "abc":
        script = f"$DRAGOMAN_SSH -o ConnectTimeout=5 {name} 'hostname; uname -n; pwd'; getent hosts {name}"
        home, address = os.path.expanduser("~root" if os.geteuid() == 0 else "~"), hosts.address_of(name)  # noqa: PTH111
        first, second, folder, resolved = hosts.output_of("a", ["sh", "-c", script]).splitlines()
        assert (first, second, folder, resolved.split()[0]) == (name, name, home, address)
    assert hosts.output_of("b", ["sh", "-c", "ls /sys/class/net"]).split() == ["eth0", "lo"]
    assert hosts.processes_on("b") == {}


def test_a_host_that_is_not_there(lab_hosts):
    done = lab_hosts(1, "unlimited").run_on("a", ["sh", "-c", "$DRAGOMAN_SSH -o BatchMode=yes z hostname"])
    assert done.returncode == 255
    assert "Could not resolve hostname z" in done.stderr


def test_other_hosts_see_the_disk_of_the_first_and_keep_what_they_write(lab_hosts, tmp_path):
    (tmp_path / "data").write_text("prepared")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "of-a").touch()
    hosts = lab_hosts(3, "unlimited", own_folders=["runs"])
    script = f"cat data; echo {{}} > data; ls runs; touch runs/of-{{}} ~/.dragoman-lab-test; ls {hosts.folder}"
    assert hosts.output_of("b", ["sh", "-c", script.format("b", "b")]) == "prepareddata\nruns\n"
    assert hosts.output_of("c", ["sh", "-c", script.format("c", "c")]) == "prepareddata\nruns\n"
    assert hosts.output_of("b", ["sh", "-c", "cat data; ls runs"]) == "b\nof-b\n"
    assert hosts.output_of("a", ["sh", "-c", "cat data; ls runs; touch made"]) == "preparedof-a\n"
    assert (hosts.folder / "made").exists()
    assert not (Path.home() / ".dragoman-lab-test").exists()


def test_cores_are_shared_out(lab_hosts):
    hosts = lab_hosts(2, "unlimited")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core cannot be shared out")
    script = f"{sys.executable} -c 'import os; print(*os.sched_getaffinity(0))'"
    one = hosts.output_of("a", ["sh", "-c", script]).split()
    other = hosts.output_of("a", ["sh", "-c", f"$DRAGOMAN_SSH b {shlex.quote(script)}"]).split()
    assert one and other and not set(one) & set(other)


def test_no_signal_that_ends_a_worker_is_ignored_on_a_host(lab_hosts):
    """A worker that cannot be interrupted would be the lab's doing."""
    ignored = "grep SigIgn /proc/self/status"
    hosts = lab_hosts(2, "unlimited")
    lines = hosts.output_of("a", ["sh", "-c", f"{ignored}; $DRAGOMAN_SSH b {ignored}"]).splitlines()
    # The others may be ignored by whoever started the tests: a shell's background jobs ignore SIGQUIT.
    ending = sum(1 << (number - 1) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM))
    assert [int(line.split()[1], 16) & ending for line in lines] == [0, 0]


def test_a_lab_of_two_hosts_starts_at_once(lab_hosts):
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        lab_hosts(2, "100mbit")
        seconds.append(time.monotonic() - start)
    assert min(seconds) < 1.5


def test_the_command_runs_on_host_a_with_folder_environment_and_exit_code(here):
    script = "hostname; pwd; echo $MINE; touch made; exit 3"
    environment = {**os.environ, "MINE": "kept"}
    command = [*DRAGOMAN, "lab", "--hosts", "2", "--link", "100mbit", "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout.splitlines() == ["a", str(here), "kept"]
    assert done.stderr == "2 hosts a, b on a 100 Mb/s link; ssh a, ssh b work inside\n"
    assert done.returncode == 3
    assert (here / "made").exists()


PATIENT = """
import signal, sys, time
caught = []
signal.signal(signal.SIGINT, lambda *_: caught.append(print("caught", flush=True)))
print("ready", flush=True)
while not caught:  # not pause(): the signal may come before it is called
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(7)
"""


def test_ctrl_c_reaches_the_command_once_and_its_exit_code_comes_back(here):
    (here / "patient.py").write_text(PATIENT)
    # exec: a shell that stayed would get the Ctrl-C too and, if it is dash, die of it.
    process = typed("exec " + shlex.join([*DRAGOMAN, "lab", "--hosts", "2", "--", sys.executable, "patient.py"]))
    while "ready" not in process.stdout.readline():
        pass
    process.stdin.write("\x03")
    process.stdin.flush()
    out, _ = process.communicate(timeout=30)
    assert out.count("caught") == 1
    assert process.returncode == 7


def test_without_a_command_there_is_a_shell_that_gives_the_terminal_back(here, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/bash")
    process = typed(
        f"{shlex.join([*DRAGOMAN, 'lab', '--hosts', '2'])}; code=$?; read word; echo then $word; exit $code"
    )
    process.stdin.write("sleep 0.1 & fg; echo on $(hostname); exit 4\n")
    process.stdin.flush()
    while "on a" not in process.stdout.readline():
        pass
    out, _ = process.communicate("outside\n", timeout=30)
    assert "then outside" in out
    assert "job control" not in out
    assert process.returncode == 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_of_a_lab_that_was_ended(here, number):
    before = left_on_machine()
    far_side = "setsid sleep 4711 </dev/null >/dev/null 2>&1 & echo far"
    script = f"echo $DRAGOMAN_LAB; setsid sleep 4711 & $DRAGOMAN_SSH b {shlex.quote(far_side)}; exec sleep 4711"
    command = [*DRAGOMAN, "lab", "--hosts", "2", "--link", "100mbit", "--", "sh", "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    folder = process.stdout.readline().strip()
    assert process.stdout.readline() == "far\n"
    assert Path(folder, "lab.json").exists()
    assert len(processes_with(folder)) >= 3
    process.send_signal(number)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (Path(folder).exists() or processes_with(folder, "4711")):
        time.sleep(0.1)
    assert processes_with(folder, "4711") == []
    assert not Path(folder).exists()
    assert left_on_machine() == before
    assert process.wait(10) == (-9 if number == signal.SIGKILL else 128 + number)
    process.stdout.close()


def left_on_machine() -> tuple[str, list[str]]:
    """Mounts, and network cards."""
    return Path("/proc/self/mounts").read_text(), sorted(path.name for path in Path("/sys/class/net").iterdir())


def processes_with(*words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        found += [text for word in words if word in text and path.parent.name != str(os.getpid())]
    return found
