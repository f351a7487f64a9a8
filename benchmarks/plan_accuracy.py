"""What `plan` says from a profile of `doctor`, against what training then takes, on two emulated hosts.

    python benchmarks/plan_accuracy.py --data demo/data [--recipe phrasebook] [--steps 60]      (root, Linux)

For every link one lab: `doctor` measures, then every method is planned and trained. Prints one JSON line per case: the
predicted and the measured median step seconds (the first steps left out), and their ratio.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LINKS = ("100mbit", "1gbit")
METHODS = {
    "dense fp32": ("sync.method=dense",),
    "dense bf16": ("sync.method=dense", "sync.precision=bf16"),
    "powersgd": ("sync.method=powersgd", "sync.dense_steps=4"),
    "diloco": ("sync.method=diloco",),
}
DRAGOMAN = f"{shlex.quote(sys.executable)} -m dragoman"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--recipe", default="phrasebook")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--first", type=int, default=10, help="steps left out at the beginning; powersgd's first 4 are dense"
    )
    parser.add_argument("--links", default=",".join(LINKS))
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    for link in options.links.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            measure(options, link, folder)
            for number, method in enumerate(METHODS):
                print(
                    json.dumps(
                        {
                            "recipe": options.recipe,
                            "set": options.set,
                            "link": link,
                            "method": method,
                            **outcome(folder, number, options.first),
                        }
                    ),
                    flush=True,
                )


def measure(options: argparse.Namespace, link: str, folder: Path) -> None:
    """One lab for all of it: the profile is that of the machines that train."""
    data = options.data.resolve()
    length = (
        f"train.max_steps={options.steps}",
        "evaluate.every_steps=100000",
        "evaluate.decode=false",
        "evaluate.train_pairs=0",
    )
    common = [*length, "checkpoint.every_steps=100000", *options.set]
    script = [
        f"{DRAGOMAN} doctor {options.recipe} {_set(common)} --data {data} --hosts a,b --out {folder}/profile.json || true"
    ]
    for number, settings in enumerate(METHODS.values()):
        changes = _set([*common, *settings])
        script.append(
            f"{DRAGOMAN} plan {options.recipe} --data {data} --profile {folder}/profile.json {changes} --out {folder}/plan-{number}.json"
        )
        script.append(
            f"{DRAGOMAN} train {options.recipe} --data {data} --run {folder}/run-{number} --hosts a,b {changes}"
        )
    lab = f"{DRAGOMAN} lab --hosts 2 --link {link} -- bash -ec {shlex.quote('; '.join(script))}"
    subprocess.run(lab, shell=True, check=True, stdout=sys.stderr)


def _set(settings: list[str]) -> str:
    return " ".join(f"--set {setting}" for setting in settings)


def outcome(folder: Path, number: int, num_first: int) -> dict[str, Any]:
    plan = json.loads((folder / f"plan-{number}.json").read_text())
    steps = [json.loads(line) for line in (folder / f"run-{number}" / "steps.jsonl").read_text().splitlines()]
    seconds = [step["step_seconds"] for step in steps if step["step"] > num_first and step["step"] < len(steps)]
    timings = [
        json.loads(line) for line in (folder / f"run-{number}" / "timing.rank-000.jsonl").read_text().splitlines()
    ]
    exchange = statistics.median(record["exchange_seconds"] for record in timings[num_first:])
    parts = plan["step"]
    predicted, measured = sum(parts.values()), statistics.median(seconds)
    return {
        "predicted_seconds": round(predicted, 4),
        "measured_seconds": round(measured, 4),
        "ratio": round(predicted / measured, 3),
        "predicted_exchange_seconds": round(parts["exchange_seconds"], 4),
        "measured_exchange_seconds": round(exchange, 4),
    }


if __name__ == "__main__":
    main()
