"""`train --hosts` on emulated hosts: real ssh, a shaped link, no shared disk."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from emulated import EmulatedHosts
from emulated_runs import DRAGOMAN, QUICK, all_gone, kill_on, ours, start, train_command, wait_for

from command_line import changes, run_dragoman
from dragoman.run.control import Control, read_control
from dragoman.run.folder import RunFolder
from dragoman.run.reader import RunRecord, read_run


def control_of(hosts: EmulatedHosts) -> Control:
    control = read_control(RunFolder(hosts.folder / "run"))
    assert control is not None
    return control


def listening(hosts: EmulatedHosts, host: str) -> set[str]:
    lines = hosts.output_of(host, ["ss", "-ltnH"]).splitlines()
    return {line.split()[3].rpartition(":")[0] for line in lines}


def losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records]


def test_a_run_on_unequal_hosts_is_the_run_of_one_and_everything_is_gathered(lab_hosts, phrasebook_data, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    settings = (*QUICK, "train.max_steps=40", "evaluate.every_steps=40")
    command = [*DRAGOMAN, "train", "phrasebook", "--data", phrasebook_data, "--run", "run", "--hosts", "a,b:2"]
    done = hosts.run_on("a", [*command, *changes(*settings)], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "network: 10.77.0.0/24 (eth0)" in done.stderr
    assert "a (1 x eth0 10.77.0.1), b (2 x eth0 10.77.0.2)" in done.stderr
    assert re.search(r"^\[a:0\] finished at step 40", done.stdout, re.MULTILINE)
    run = tmp_path / "run"
    for rank, host in enumerate("abb"):
        lines = (run / f"timing.rank-{rank:03d}.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        assert [record["step"] for record in records] == list(range(1, 41))
        assert {record["host"] for record in records} == {host}
    check_hosts(read_run(run))
    control = control_of(hosts)
    assert (control.state, control.exit_code, control.reason) == ("ended", 0, "finished")
    assert hosts.output_of("b", ["ls", "run"]).split()  # b has a run folder of its own
    assert "control.json" not in hosts.output_of("b", ["ls", "run"])
    all_gone(hosts)
    run_dragoman("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / "one", *changes(*settings))
    for ours_, theirs in zip(losses(run), losses(tmp_path / "one"), strict=True):
        assert ours_ == pytest.approx(theirs, rel=1e-3)


def check_hosts(run: RunRecord) -> None:
    """Both hosts are known by name and card, sampled each second, and their clocks compared."""
    assert [(host.name, host.interface, host.num_ranks) for host in run.manifest.hosts] == [
        ("a", "eth0", 1),
        ("b", "eth0", 2),
    ]
    assert {sample.host for sample in run.samples} == {"a", "b"}
    for host in "ab":
        sent = [card.sent_bytes for sample in run.samples if sample.host == host for card in sample.cards]
        assert sum(sent) > 1_000_000
    start, *_ = run.events_of("clocks")
    assert start.step == 0
    assert start.detail["offsets"]["a"] == 0
    assert abs(start.detail["offsets"]["b"]) < 0.05  # one machine, one clock
    begun = {(timing.step, timing.rank): timing.exchange_start for timing in run.timings}
    for timing in run.timings:
        # Nobody's sum is there before the last rank has begun with its own.
        last = max(begun[timing.step, rank] for rank in range(3))
        assert last <= timing.time - timing.validation_seconds - timing.checkpoint_seconds + 0.05


def test_a_run_that_would_mostly_wait_does_not_begin(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "2mbit")
    done = hosts.run_on("a", train_command(phrasebook_data, "--abort-if-waiting", "10%"), timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(
        r"^\[a:0\] .* each way over eth0 at [\d.]+ Mb/s: .* a step, .*\d+ % waiting", done.stdout, re.MULTILINE
    )
    assert re.search(r"\[a:0\] error: not begun: \d+% of a step would be waiting, more than 10%", done.stdout)
    folder = hosts.folder / "run"
    assert json.loads((folder / "prediction.json").read_text())["num_hosts"] == 2
    assert json.loads((folder / "profile.json").read_text())["link"]["bytes_per_second"] < 400_000
    assert not (folder / "manifest.json").exists()  # so the same command begins anew
    all_gone(hosts)


def test_the_terminal_is_only_a_viewer_and_stop_leaves_nothing(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    viewer = start(hosts, phrasebook_data)
    for host in hosts.names:
        assert listening(hosts, host) == {hosts.address_of(host)}
    viewer.kill()
    viewer.communicate()
    time.sleep(2)
    assert control_of(hosts).state == "running"
    again = hosts.run_on("a", train_command(phrasebook_data), timeout=60)
    assert again.returncode == 2
    assert "is running on a, b" in again.stderr

    place = f"a:{hosts.folder / 'run'}"
    attached = hosts.start("b", [*DRAGOMAN, "attach", place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert attached.stdout is not None
    assert attached.stdout.readline().startswith("[controller] attempt 1")
    detached = hosts.start("b", [*DRAGOMAN, "attach", place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert detached.stdout is not None
    detached.stdout.readline()
    interrupt(hosts, "b", detached)
    assert "the run goes on" in detached.communicate(timeout=10)[0]
    assert detached.returncode == 0

    since = time.monotonic()
    stopped = hosts.run_on("b", [*DRAGOMAN, "stop", place], timeout=30)
    assert stopped.returncode == 0, stopped.stderr
    assert time.monotonic() - since < 12
    assert re.search(r"stopped in \d\.\d s; no worker is left on a, b", stopped.stdout)
    all_gone(hosts, 3)
    assert "stopped at step" in attached.communicate(timeout=20)[0]
    assert attached.returncode == 130
    nothing = hosts.run_on("a", [*DRAGOMAN, "stop", "run"], timeout=30)
    assert (nothing.returncode, "is not running: it ended (stopped)" in nothing.stderr) == (2, True)


def interrupt(hosts: EmulatedHosts, host: str, process: subprocess.Popen[str]) -> None:
    """Ctrl-C for a command on a host; not to the wrapper that put it there."""
    pids = [pid for pid, words in ours(hosts, host).items() if " attach " in words]
    hosts.output_of(host, ["kill", "-INT", str(max(pids))])


HALTING = "while kill -STOP $0; do sleep 0.6; kill -CONT $0; sleep 0.1; done"


def test_a_slow_host_shows_as_the_one_that_computes_while_the_others_wait(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "unlimited")
    process = start(hosts, phrasebook_data)
    (pid,) = [pid for pid, words in ours(hosts, "b").items() if "dragoman.train.worker" in words]
    hosts.start("b", ["sh", "-c", HALTING, str(pid)], stderr=subprocess.DEVNULL)
    time.sleep(3)  # until it halts, and what was recorded before is on the disk
    before = len(read_run(hosts.folder / "run").steps)
    wait_for(lambda: len(read_run(hosts.folder / "run").steps) > before + 30, 60, "30 slow steps")
    hosts.run_on("a", [*DRAGOMAN, "stop", "run", "--now"], timeout=30)
    process.communicate(timeout=30)
    timings = [record for record in read_run(hosts.folder / "run").timings if before < record.step <= before + 30]
    waited, computed = ([0.0, 0.0], [0.0, 0.0])
    for record in timings:
        waited[record.rank] += record.exchange_seconds
        computed[record.rank] += record.forward_seconds + record.backward_seconds
    assert computed[1] > 1.5 * computed[0]
    assert waited[0] > 1.2 * waited[1]  # it is halted in its exchange, too, now and then


def test_a_killed_worker_is_named_and_the_same_command_goes_on(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    process = start(hosts, phrasebook_data, "--max-restarts", "0")
    kill_on(hosts, "b", "dragoman.train.worker")
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1, output
    assert "[controller] the run ended: rank 1 on host b was killed by SIGKILL" in output
    assert "Traceback" not in output, "the other rank's lost connection is no defect"
    all_gone(hosts)
    saved = (hosts.folder / "run/checkpoints/last").readlink().name
    settings = (*QUICK, "train.max_steps=1", "evaluate.every_steps=1000000")
    done = hosts.run_on("a", train_command(phrasebook_data, settings=settings), timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"going on from step {int(saved.removeprefix('step-')):,}" in done.stdout
    assert "[controller] attempt 2" in done.stdout


def test_a_killed_controller_ends_the_workers_of_all_hosts(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    process = start(hosts, phrasebook_data)
    kill_on(hosts, "a", "dragoman.launch.control.controller")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the controller of this run was killed" in output
    all_gone(hosts, 12)


def test_a_host_that_is_cut_off_is_named_and_both_sides_end(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    process = start(hosts, phrasebook_data, "--max-restarts", "0")
    hosts.output_of("b", ["ip", "route", "add", "blackhole", f"{hosts.address_of('a')}/32"])
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the run ended: host b stopped answering" in output
    wait_for(lambda: not [words for words in ours(hosts, "b").values() if "train.worker" in words], 30, "b ends, too")
    # Its agent calls the controller for a while, and learns that there is none any more as soon as there is a way.
    hosts.output_of("b", ["ip", "route", "del", "blackhole", f"{hosts.address_of('a')}/32"])
    all_gone(hosts, 15)


def test_by_hand_one_command_per_host(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    settings = (*QUICK, "train.max_steps=10", "evaluate.every_steps=10")
    command = train_command(phrasebook_data, "--node-rank", settings=settings)
    at = command.index("--node-rank") + 1
    by_hand = [[*command[:at], str(number), *command[at:]] for number in range(2)]
    other = hosts.start("b", by_hand[1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    done = hosts.run_on("a", by_hand[0], timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 x cpu" in done.stderr
    assert "finished at step 10" in done.stderr
    assert other.communicate(timeout=20)[0] == ""
    assert other.returncode == 0


def test_by_hand_who_is_missing_or_out_of_reach_is_named(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    limit = {"DRAGOMAN_JOIN_SECONDS": "3"}
    alone = hosts.run_on("a", train_command(phrasebook_data, "--node-rank", "0"), timeout=30, env=limit)
    assert (alone.returncode, "host b did not join within 3 s" in alone.stderr) == (2, True)
    hosts.output_of("b", ["ip", "route", "add", "blackhole", f"{hosts.address_of('a')}/32"])
    cut_off = hosts.run_on("b", train_command(phrasebook_data, "--node-rank", "1"), timeout=30, env=limit)
    assert cut_off.returncode == 2
    assert f"there is no way to {hosts.address_of('a')} from here" in cut_off.stderr
