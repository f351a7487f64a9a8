"""Runs on emulated hosts that a machine tells to leave, and what follows one that has ended well."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulated import EmulatedHosts

from command_line import changes
from dragoman.run.folder import parse_step
from small_runs import records

QUICK = ("sync.method=dense", "evaluate.decode=false", "evaluate.train_pairs=0", "checkpoint.every_steps=20")
LEAVE_SECONDS = 15.0
SECRET = "SECRET"
LISTENER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open(sys.argv[1], "ab") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])) + b"\\n")
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 8099), Handler)
print("ready", flush=True)
server.serve_forever()
"""


def train_command(data: Path, *options: str, settings: tuple[str, ...]) -> list[str]:
    words = ["train", "phrasebook", "--data", str(data), "--run", "run", "--hosts", "a,b", *options]
    return [sys.executable, "-m", "dragoman", *words, *changes(*QUICK, *settings)]


def wait_for(is_true, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pids_on(hosts: EmulatedHosts, host: str, word: str) -> list[str]:
    return [str(pid) for pid, words in hosts.processes_on(host).items() if word in words]


@pytest.mark.parametrize(
    ("host", "word", "number"),
    [
        ("a", "dragoman train phrasebook", signal.SIGUSR1),
        ("b", "control.agent", signal.SIGTERM),
        ("b", "dragoman", signal.SIGTERM),  # every process there, as schedulers do
        ("a", "dragoman", signal.SIGTERM),
    ],
)
def test_a_warning_to_any_host_saves_and_ends_the_run_with_143(lab_hosts, phrasebook_data, host, word, number):
    hosts = lab_hosts(2, "100mbit")
    command = train_command(phrasebook_data, settings=("train.max_steps=1000000", "evaluate.every_steps=1000000"))
    viewer = hosts.start("a", command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    run = hosts.folder / "run"
    wait_for(lambda: (run / "checkpoints" / "last").exists() or viewer.poll() is not None)
    since = time.monotonic()
    hosts.output_of(host, ["kill", f"-{number}", *pids_on(hosts, host, word)])
    said = viewer.communicate(timeout=30)[0]
    assert time.monotonic() - since < LEAVE_SECONDS
    assert viewer.returncode == 143, said
    end = records(run, "events")[-1]
    assert (end["kind"], end["detail"]) == ("stopped", {"reason": "preempted"})
    assert parse_step((run / "checkpoints" / "last").readlink().name) == end["step"]
    wait_for(lambda: not [words for name in "ab" for words in hosts.processes_on(name).values() if "dragoman" in words])


def test_a_detached_run_tells_how_it_goes_and_its_controller_runs_the_command(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "100mbit")
    heard, told = hosts.folder / "heard", hosts.folder / "told"
    listener = hosts.start("a", [sys.executable, "-c", LISTENER, str(heard)], stdout=subprocess.PIPE)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "ready\n"
    options = ("--detach", "--notify", f"http://127.0.0.1:8099/{SECRET}", "--mirror", str(hosts.folder / "copy"))
    command = f'test -e {hosts.folder}/copy/checkpoints/last && echo "$DRAGOMAN_REASON" > {told}'
    settings = ("train.max_steps=20", "evaluate.every_steps=20")
    done = hosts.run_on(
        "a", train_command(phrasebook_data, *options, "--when-done", command, settings=settings), timeout=60
    )
    assert done.returncode == 0, done.stderr
    wait_for(told.exists, 90)
    assert told.read_text() == "max_steps\n"
    messages = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [(message["event"], message["host"]) for message in messages] == [("started", "a"), ("done", "a")]
    kept = [path for path in (hosts.folder / "run").rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
