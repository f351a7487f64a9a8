"""Runs on emulated hosts, as tests start, watch and hurt them."""

import subprocess
import sys
import time
from pathlib import Path

from emulated import EmulatedHosts

from command_line import changes

DRAGOMAN = [sys.executable, "-m", "dragoman"]
QUICK = ("sync.method=dense", "evaluate.decode=false", "evaluate.train_pairs=0", "checkpoint.every_steps=20")
LONG = (*QUICK, "train.max_steps=1000000", "evaluate.every_steps=1000000")


def train_command(data: Path, *options: str, settings: tuple[str, ...] = LONG, hosts_text: str = "a,b") -> list[str]:
    words = ["train", "phrasebook", "--data", str(data), "--run", "run", "--hosts", hosts_text]
    return [*DRAGOMAN, *words, *options, *changes(*settings)]


def wait_for(is_true, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        time.sleep(0.05)


def start(hosts: EmulatedHosts, data: Path, *options: str, hosts_text: str = "a,b") -> subprocess.Popen[str]:
    """A run that goes on for ever, past its first checkpoint."""
    command = train_command(data, *options, hosts_text=hosts_text)
    process = hosts.start("a", command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    last = hosts.folder / "run" / "checkpoints" / "last"
    wait_for(lambda: last.exists() or process.poll() is not None, 60, "a checkpoint")
    assert last.exists(), process.communicate()[0]
    return process


def ours(hosts: EmulatedHosts, host: str) -> dict[int, str]:
    return {pid: words for pid, words in hosts.processes_on(host).items() if "dragoman" in words}


def all_gone(hosts: EmulatedHosts, seconds: float = 10) -> None:
    for host in hosts.names:
        wait_for(lambda host=host: not ours(hosts, host), seconds, f"{host} has none of {ours(hosts, host)}")


def kill_on(hosts: EmulatedHosts, host: str, word: str) -> None:
    pids = [pid for pid, words in ours(hosts, host).items() if word in words]
    hosts.output_of(host, ["kill", "-9", *map(str, pids)])
