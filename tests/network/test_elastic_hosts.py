"""Emulated hosts that are lost and come back: the run goes on with those that are there, by itself."""

import json
import subprocess
import time

from emulated import EmulatedHosts
from emulated_runs import DRAGOMAN, QUICK, all_gone, kill_on, ours, start, wait_for

from dragoman.run.control import read_control
from dragoman.run.folder import RunFolder

LONG = (*QUICK, "train.max_steps=1000000", "evaluate.every_steps=1000000", "train.hang_minutes=1")


def attempts(hosts: EmulatedHosts) -> list[int]:
    """Of every step, in order."""
    path = hosts.folder / "run" / "steps.jsonl"
    return [json.loads(line)["attempt"] for line in path.read_text().splitlines() if line.endswith("}")]


def await_attempt(hosts: EmulatedHosts, number: int, seconds: float) -> float:
    """Seconds until a step of that attempt has ended."""
    since = time.monotonic()
    log = hosts.folder / "run" / "hosts.log"
    wait_for(lambda: attempts(hosts)[-1] == number, seconds, f"attempt {number}: {log.read_text()[-3000:]}")
    return time.monotonic() - since


def members(hosts: EmulatedHosts) -> list[str]:
    control = read_control(RunFolder(hosts.folder / "run"))
    assert control is not None
    return [member["name"] for member in control.members]


def cut(hosts: EmulatedHosts, host: str, word: str = "add") -> None:
    """A host's way to all others; its ssh too."""
    others = [name for name in hosts.names if name != host]
    for name in others:
        hosts.output_of(host, ["ip", "route", word, "blackhole", f"{hosts.address_of(name)}/32"])


def stop(hosts: EmulatedHosts, process: subprocess.Popen[str]) -> str:
    hosts.run_on("a", [*DRAGOMAN, "stop", "run"], timeout=60)
    output, _ = process.communicate(timeout=60)
    all_gone(hosts, 30)
    return output


def test_a_run_goes_on_by_itself_after_a_killed_worker_and_without_a_lost_host_until_it_is_back(
    lab_hosts, phrasebook_data
):
    hosts = lab_hosts(3, "100mbit")
    process = start(hosts, phrasebook_data, "--min-hosts", "1", hosts_text="a,b,c")
    kill_on(hosts, "b", "dragoman.train.worker")
    print("a worker", await_attempt(hosts, 2, 40))
    assert members(hosts) == ["a", "b", "c"]
    cut(hosts, "b")
    print("a host", await_attempt(hosts, 3, 60))
    assert members(hosts) == ["a", "c"]
    wait_for(lambda: not [word for word in ours(hosts, "b").values() if "worker" in word], 30, "b stops training")
    cut(hosts, "b", "del")
    print("back", await_attempt(hosts, 4, 60))
    assert members(hosts) == ["a", "b", "c"]
    output = stop(hosts, process)
    assert "Traceback" not in output
    assert "were copied from a in" in output
