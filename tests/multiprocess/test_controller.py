"""Controller, host agents and workers of a few lines: whatever ends a run, the cause is named and nothing is left."""

import dataclasses
import json
import os
import queue
import signal
import socket
import threading
import time

import psutil
import pytest
from controlled import TOKEN

from dragoman.launch.control import workers
from dragoman.launch.control.agent import HostAgent
from dragoman.launch.control.channel import Channel, ChannelError, call
from dragoman.launch.control.links import Event, Links
from dragoman.launch.control.run_ops import look, stop_run
from dragoman.launch.hosts.members import Member
from dragoman.run.control import Control, is_alive, write_control
from dragoman.run.folder import create_run_folder

WAIT = "print('ready', flush=True); time.sleep(120)"
SAVES = (
    """
def save(number, _):
    print("saved after", signal.Signals(number).name, flush=True)
    sys.exit({signal.SIGINT: 130}.get(number, 143))
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    signal.signal(number, save)
"""
    + WAIT
)
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + WAIT


def test_ranks_are_counted_over_unequal_hosts_and_every_line_is_marked(make_run):
    program = """
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GLOO_SOCKET_IFNAME", "DRAGOMAN_HOST")
print(*[os.environ[name] for name in names])
"""
    run = make_run(program, (1, 2))
    control = run.start_agents().ended()
    assert (control.exit_code, control.reason) == (0, "finished")
    assert {"[a:0] 0 3 0 0 lo a", "[b:1] 1 3 0 1 lo b", "[b:2] 2 3 1 1 lo b"} <= set(run.log().splitlines())
    assert [member["name"] for member in control.members] == ["a", "b"]


LINES = """
for i in range(3000):
    print(rank, i, "x" * 50, file=(sys.stdout, sys.stderr)[i % 2])
print(rank, "end", end="")
"""


def test_what_workers_print_is_whole_and_in_order(make_run):
    run = make_run(LINES, (1, 2))
    run.start_agents().ended()
    lines = run.log().splitlines()
    for host, rank in (("a", 0), ("b", 1), ("b", 2)):
        own = [line for line in lines if line.startswith(f"[{host}:{rank}] ")]
        assert own == [*(f"[{host}:{rank}] {rank} {i} {'x' * 50}" for i in range(3000)), f"[{host}:{rank}] {rank} end"]
    assert lines[-1] == "[controller] the run ended: finished (exit code 0)"


@pytest.mark.parametrize(
    ("program", "code", "reason"),
    [
        ("sys.exit(3) if rank == 1 else time.sleep(60)", 1, "rank 1 on host b failed with exit code 3"),
        ("os.kill(os.getpid(), 9) if rank == 1 else time.sleep(60)", 1, "rank 1 on host b was killed by SIGKILL"),
        ("sys.exit(2)", 2, "failed with exit code 2"),
        ("sys.exit(130)", 130, "interrupted"),
        ("sys.exit(143) if rank == 1 else sys.exit(130)", 143, "told by a signal to leave"),
        # The follower's broken connection is reported first and is not the cause.
        ("sys.exit(75) if rank == 0 else (time.sleep(1), sys.exit(3))", 1, "rank 1 on host b failed with exit code 3"),
    ],
)
def test_the_cause_is_named_and_the_others_are_ended(make_run, program, code, reason):
    run = make_run(f"print('my', 'last words', rank, flush=True)\n{program}").start_agents()
    control = run.ended(30)
    assert control.exit_code == code
    assert reason in control.reason
    if code == 1:
        assert "[controller]   my last words 1" in run.log()


def test_a_host_that_never_joins_is_named(make_run):
    run = make_run(WAIT, join_seconds=2.0).start_agents("a")
    control = run.ended(10)
    assert control.exit_code == 1
    assert "b never joined within 2 s" in control.reason
    assert "127.0.0.1" in control.reason


def test_a_stop_while_hosts_join_is_one(make_run):
    """Whatever else is in the queue."""
    links = Links((Member("a", "a", None, None, "127.0.0.1", "lo", 1),), TOKEN)
    try:
        for event in (Event("message", "b", {"type": "alive"}), Event("joined", "a"), Event("stop")):
            links.events.put(event)
        assert links.await_hosts({"a"}.issubset, 1.0) == "stop"
        assert links.await_hosts({"a"}.issubset, 0.1) is None
    finally:
        links.close()
    for number, code in ((signal.SIGINT, 130), (signal.SIGUSR1, 143)):
        run = make_run(WAIT)
        os.kill(run.now.pid, number)
        control = run.ended(10)
        assert (control.exit_code, control.reason) == (code, "stopped before it began")


def test_a_signal_handler_may_put_an_event_at_any_time():
    """queue.Queue waits for ever where the signal comes while its lock is held."""
    links = Links((Member("a", "a", None, None, "127.0.0.1", "lo", 1),), TOKEN)
    assert isinstance(links.events, queue.SimpleQueue)
    links.close()


@pytest.mark.parametrize("proof", ["0" * 64, "ü", "\ud800", None, 3])
def test_a_wrong_proof_gets_no_answer(proof):
    links = Links((Member("a", "a", None, None, "127.0.0.1", "lo", 1),), TOKEN)
    channel = Channel(socket.create_connection(("127.0.0.1", links.port)))
    try:
        assert channel.receive().keys() == {"nonce"}
        channel.send({"name": "a", "nonce": "1", "proof": proof})
        with pytest.raises(ChannelError, match="closed"):
            channel.receive()
        assert links.next_event(0.2) is None
    finally:
        channel.close()
        links.close()


def test_who_does_not_know_the_token_is_not_let_in(make_run):
    run = make_run(WAIT, join_seconds=3.0).start_agents("a")
    with pytest.raises(ChannelError):
        call("127.0.0.1", run.now.port, "b", "another token")
    stranger = call("127.0.0.1", run.now.port, "stranger", TOKEN)
    assert stranger.receive() == {"type": "leave"}
    with pytest.raises(ChannelError):
        stranger.receive()
    stranger.close()
    assert "b never joined" in run.ended(20).reason


def test_only_the_chosen_address_listens(make_run):
    run = make_run(WAIT).start_agents()
    run.wait_for_line("[b:1] ready")
    listening = {address for pid in run.processes() for address in listening_addresses(pid)}
    assert listening == {"127.0.0.1"}
    os.kill(run.now.pid, signal.SIGUSR2)
    assert run.ended(10).exit_code == 130


def listening_addresses(pid: int) -> list[str]:
    return [c.laddr.ip for c in psutil.Process(pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]


def test_stop_lets_workers_save_and_leaves_nothing(make_run):
    run = make_run(SAVES, (2, 1)).start_agents()
    for mark in ("[a:0] ready", "[a:1] ready", "[b:2] ready"):
        run.wait_for_line(mark)
    answer = stop_run(str(run.folder.path))
    assert answer["seconds"] < 10
    assert (answer["reason"], answer["members"]) == ("stopped", ["a", "b"])
    assert (answer["state"], answer["exit_code"]) == ("ended", 130)
    control = run.ended(5)
    assert control.exit_code == 130
    assert all(f"{mark} saved after SIGINT" in run.log() for mark in ("[a:0]", "[a:1]", "[b:2]"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("who", ["controller", "agent", "node", "worker"])
def test_a_warning_to_any_process_lets_all_workers_save_and_the_run_leaves(make_run, who, number):
    run = make_run(SAVES).start_agents()
    for mark in ("[a:0] ready", "[b:1] ready"):
        run.wait_for_line(mark)
    pids = {"controller": run.now.pid, "agent": run.agents["b"].pid, "worker": run.worker_pids("b")[0]}
    (pids["node"],) = [pid for pid, words in run.processes("b").items() if "dragoman.dist.node" in words]
    os.kill(pids[who], number)
    control = run.ended(15)
    assert (control.exit_code, control.reason) == (143, "told by a signal to leave")
    assert run.log().count("saved after SIG") == 2


def test_a_worker_that_does_not_leave_is_killed_in_time(make_run):
    run = make_run(STUBBORN).start_agents()
    run.wait_for_line("[a:0] ready")
    run.wait_for_line("[b:1] ready")
    assert 6 < stop_run(str(run.folder.path))["seconds"] < 10
    run.ended(2)


def test_stop_now_does_not_wait(make_run):
    run = make_run(STUBBORN).start_agents()
    run.wait_for_line("[b:1] ready")
    assert stop_run(str(run.folder.path), is_now=True)["seconds"] < 4
    assert run.ended(2).exit_code == 130


def test_a_killed_controller_takes_everything_with_it(make_run):
    run = make_run(SAVES).start_agents()
    run.wait_for_line("[a:0] ready")
    run.wait_for_line("[b:1] ready")
    run.controller.kill()
    run.all_gone(12)
    assert not is_alive(run.now, run.folder)
    assert run.now.state == "running"
    answer = look(str(run.folder.path))
    assert (answer["is_alive"], answer["state"]) == (False, "running")


def test_a_killed_agent_is_named_and_its_workers_end_too(make_run):
    run = make_run(STUBBORN).start_agents()
    run.wait_for_line("[b:1] ready")
    run.agents["b"].kill()
    control = run.control(lambda control: control.state == "ended", 20)
    assert (control.exit_code, control.reason) == (1, "host b stopped answering")
    run.all_gone(10)  # those of b have 7 s to save


def test_a_killed_torchrun_agent_leaves_no_worker(make_run):
    run = make_run("if rank == 1: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT).start_agents()
    run.wait_for_line("[b:1] ready")
    (node,) = [pid for pid, words in run.processes("b").items() if "dragoman.dist.node" in words]
    os.kill(node, signal.SIGKILL)
    control = run.ended(30)
    assert control.exit_code == 1
    assert "rank 1 on host b was killed by SIGKILL" in control.reason


def test_a_silent_agent_is_noticed(make_run):
    run = make_run(SAVES).start_agents()
    run.wait_for_line("[b:1] ready")
    run.wait_for_line("[a:0] ready")
    since = time.monotonic()
    run.agents["b"].send_signal(signal.SIGSTOP)
    control = run.control(lambda control: control.state == "ended", 40)
    assert 8 < time.monotonic() - since < 25
    assert control.reason == "host b stopped answering"
    run.agents["b"].send_signal(signal.SIGCONT)
    run.all_gone(15)


RECORDS = """
from pathlib import Path
path = Path(os.environ["RUN"]) / f"timing.rank-{rank:03d}.jsonl"
with path.open("a") as file:
    for step in range(500):
        file.write('{"step": %d}\\n' % step)
        file.flush()
        time.sleep(0.002)
"""


def test_records_of_other_hosts_are_gathered_once(make_run):
    run = make_run(RECORDS)
    (run.home / "b").mkdir()
    (run.home / "b" / "checkpoints").mkdir()
    (run.home / "b" / "timing.rank-001.jsonl").write_text('{"step": -2}\n{"step": -1}\n')
    (run.folder.path / "gathered.json").write_text(json.dumps({"b": {"timing.rank-001.jsonl": 13}}))
    assert run.start_agents().ended().exit_code == 0
    steps = [json.loads(line)["step"] for line in (run.folder.path / "timing.rank-001.jsonl").read_text().splitlines()]
    assert steps == [-1, *range(500)]
    size = (run.home / "b" / "timing.rank-001.jsonl").stat().st_size
    assert json.loads((run.folder.path / "gathered.json").read_text()) == {"b": {"timing.rank-001.jsonl": size}}


NOISY_NODE = """
import sys
print("a library says hello")
print(3)
print('{"lines": [[0, "mine"]]}')
print('{"exits": {"0": 3}}')
"""


def test_what_a_library_prints_into_the_nodes_reports_is_passed_on(tmp_path, monkeypatch, capfd):
    (tmp_path / "noisy.py").write_text(NOISY_NODE)
    monkeypatch.setattr(workers, "NODE", "noisy")
    lines, ended = [], threading.Event()
    made = workers.Workers({"listen_fd": None}, {"PYTHONPATH": str(tmp_path)}, lines.extend, ended.set)
    assert ended.wait(20)
    made._process.stdin.close()
    assert (lines, made.report()) == ([[0, "mine"]], {"exits": {"0": 3}, "refused": None, "code": 0})
    assert capfd.readouterr().err == "a library says hello\n3\n"


def test_a_controller_lives_as_long_as_it_holds_its_lock(make_run):
    """Whatever the clock of the machine is set to."""
    run = make_run(WAIT)
    moved = dataclasses.replace(run.now, pid_started=run.now.pid_started - 3600)
    assert is_alive(moved, run.folder)
    assert not is_alive(dataclasses.replace(moved, pid=os.getpid()), run.folder)
    run.controller.kill()
    run.controller.wait()
    assert not is_alive(run.now, run.folder)


def test_a_host_that_sees_the_controllers_folder_knows_it(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    write_control(folder, Control("running", 1, 7, 1700000000.25, "a", "127.0.0.1", 9))
    agent = HostAgent(None, {"run": str(folder.path)})
    assert agent._is_controllers_folder([7, 1700000000.25])
    assert not agent._is_controllers_folder([7, 1700000099.0])


def test_two_runs_go_side_by_side(make_run):
    first, second = make_run(SAVES).start_agents(), make_run("print('quick', rank)").start_agents()
    assert second.ended().exit_code == 0
    first.wait_for_line("[b:1] ready")
    assert first.now.state == "running"
    stop_run(str(first.folder.path))
    assert first.ended().exit_code == 130


WHEN_DONE = 'test -e "$COPY/hosts.log" && echo "$DRAGOMAN_RUN $DRAGOMAN_REASON" > "$COPY.told"'


def test_the_command_of_when_done_follows_a_good_end_and_a_whole_copy(make_run, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    monkeypatch.setenv("COPY", str(copy))
    options = {"mirror": str(copy), "when_done": WHEN_DONE}
    run = make_run("print('quick', rank)", **options).start_agents()
    assert run.ended().exit_code == 0
    assert (tmp_path / "copy.told").read_text() == f"{run.folder.path} finished\n"
    (tmp_path / "copy.told").unlink()

    stopped = make_run(SAVES, **options).start_agents()
    stopped.wait_for_line("[b:1] ready")
    stop_run(str(stopped.folder.path))
    stopped.ended()
    assert not (tmp_path / "copy.told").exists()


def test_no_command_follows_a_copy_that_is_not_whole(make_run, tmp_path):
    (tmp_path / "file").write_text("no folder")
    options = {"mirror": str(tmp_path / "file" / "copy"), "when_done": f"touch {tmp_path}/told"}
    run = make_run("print('quick', rank)", **options).start_agents()
    assert run.ended().exit_code == 0
    assert "warning: --when-done is left out: the mirror is not complete" in run.log()
    assert not (tmp_path / "told").exists()
