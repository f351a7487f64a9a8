"""`dragoman watch HOST:RUN`: a run on the disk of another host, followed over ssh while it grows."""

import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
# On the host of the run: as many steps more for every line that is read.
GROW = """
import sys; from pathlib import Path; from growing_run import GrowingRun
run = GrowingRun(Path(sys.argv[1]))
for line in sys.stdin:
    run.steps(int(line)); print(run.step, flush=True)
"""
# On the host of the page: asks until it shows the step.
ASK = """
import json, sys, time; from urllib.request import urlopen
deadline, live = time.monotonic() + 20, {}
while live.get("step", "").split(" of ")[0] != sys.argv[2] and time.monotonic() < deadline:
    time.sleep(0.2); live = json.load(urlopen(sys.argv[1] + "live"))
print(live["state"]["kind"], live["step"])
"""


def test_a_run_on_another_host_is_followed(lab_hosts, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    run = tmp_path / "there" / "run"
    grower = hosts.start(
        "b",
        [sys.executable, "-c", GROW, run],
        {"PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def grow(count: int) -> str:
        grower.stdin.write(f"{count}\n")
        grower.stdin.flush()
        return grower.stdout.readline().strip()

    def shown(address: str, step: str) -> str:
        return hosts.output_of("a", [sys.executable, "-c", ASK, address, f"Step {step}"]).strip()

    first = grow(5)
    watch = [sys.executable, "-m", "dragoman.cli", "watch", f"b:{run}", "--port", "0"]
    page = hosts.start("a", watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = re.search(r"http://\S+", page.stdout.readline())
    assert found and not run.exists(), "the run is on the disk of b alone"
    assert shown(found.group(), first) == "running Step 5 of 1,000"
    assert shown(found.group(), grow(20)) == "running Step 25 of 1,000"
    page.terminate()
    assert page.communicate(timeout=10)[1] == ""
