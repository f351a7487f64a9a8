"""Emulated hosts that are lost and come back: the run goes on with those that are there, by itself."""

import json
import subprocess

from emulated import EmulatedHosts
from emulated_runs import DRAGOMAN, QUICK, all_gone, kill_on, ours, start, train_command, wait_for

from dragoman.run.control import read_control
from dragoman.run.folder import RunFolder


def attempts(hosts: EmulatedHosts) -> list[int]:
    """Of every step, in order."""
    path = hosts.folder / "run" / "steps.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["attempt"] for line in lines if line.endswith("}")]


def await_attempt(hosts: EmulatedHosts, number: int, seconds: float) -> None:
    """Until a step of that attempt has ended."""
    log = hosts.folder / "run" / "hosts.log"
    wait_for(lambda: number in attempts(hosts)[-1:], seconds, f"attempt {number}: {log.read_text()[-3000:]}")


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
    await_attempt(hosts, 2, 40)
    kill_on(hosts, "a", "control.agent")
    await_attempt(hosts, 3, 40)
    assert members(hosts) == ["a", "b", "c"]
    cut(hosts, "b")
    await_attempt(hosts, 4, 60)
    assert members(hosts) == ["a", "c"]
    wait_for(lambda: not [word for word in ours(hosts, "b").values() if "worker" in word], 30, "b stops training")
    cut(hosts, "b", "del")
    await_attempt(hosts, 5, 60)
    assert members(hosts) == ["a", "b", "c"]
    output = stop(hosts, process)
    assert "Traceback" not in output
    assert "were copied from a in" in output


def test_a_host_that_began_anew_takes_part_again_by_the_same_command(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    process = start(hosts, phrasebook_data)
    log = hosts.folder / "run" / "hosts.log"
    kill_on(hosts, "b", "dragoman")
    wait_for(lambda: "too few hosts are left: waiting for them" in log.read_text(), 40, log.read_text()[-2000:])
    again = hosts.start("a", train_command(phrasebook_data), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    await_attempt(hosts, 2, 60)
    assert members(hosts) == ["a", "b"]
    refused = hosts.run_on("a", train_command(phrasebook_data), timeout=60)
    assert refused.returncode == 2
    assert "run is running on a, b" in refused.stderr
    output = stop(hosts, process)
    assert again.communicate(timeout=30)[0].startswith("it runs already: b will take part again")
    assert again.returncode == 130
    assert "Traceback" not in output
    assert not (hosts.folder / "run/.admission.json").exists()


def test_when_the_first_host_is_lost_a_survivor_goes_on_from_its_own_copy(lab_hosts, phrasebook_data):
    hosts = lab_hosts(3, "100mbit")
    start(hosts, phrasebook_data, "--min-hosts", "1", hosts_text="a,b,c")
    cut(hosts, "a")
    kill_on(hosts, "a", "dragoman")
    wait_for(lambda: not ours(hosts, "a"), 10, "a is gone")
    wait_for(lambda: not [word for word in ours(hosts, "b").values() if "worker" in word], 30, "b stops training")
    settings = (*QUICK, "train.max_steps=60", "evaluate.every_steps=1000000")
    command = train_command(phrasebook_data, "--min-hosts", "1", settings=settings, hosts_text="a,b,c")
    done = hosts.run_on("b", command, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: going on without a" in done.stderr
    assert "going on from step" in done.stdout
    all_gone(hosts, 20)
