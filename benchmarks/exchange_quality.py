"""What each exchange method costs in quality: the same run with every method, judged after the same target tokens.

    python benchmarks/exchange_quality.py --data DIR --out FILE.jsonl --runs RUNS.json [--parallel 4]

RUNS.json is a list of {"name": ..., "recipe": ..., "workers": 2, "set": ["key=value", ...]}. Prints one JSON line per
run: dev loss, BLEU, bytes sent per step and rank. Several gloo ranks may share one GPU, so one GPU is enough.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=1e9, help="start no run after so many seconds")
    options = parser.parse_args()
    runs = json.loads(options.runs.read_text())
    start = time.monotonic()

    def measure(run: dict[str, Any]) -> None:
        if time.monotonic() - start > options.deadline:
            return
        line = json.dumps(run_one(run, options.data))
        print(line, flush=True)
        with options.out.open("a") as file:
            file.write(line + "\n")

    with ThreadPoolExecutor(options.parallel) as pool:
        list(pool.map(measure, runs))


def run_one(run: dict[str, Any], data: Path) -> dict[str, Any]:
    """Train in a temporary folder and read its records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        command = [sys.executable, "-m", "dragoman.cli", "train", run["recipe"], "--data", str(run.get("data", data))]
        command += ["--run", str(path), "--workers", str(run["workers"])]
        command += [part for change in run["set"] for part in ("--set", change)]
        start = time.monotonic()
        # Ranks of one machine are replicas here; without this, gloo threads of many runs fight for the cores.
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            return {"name": run["name"], "error": done.stderr[-1500:]}
        return {"name": run["name"], **figures(path), "seconds": round(time.monotonic() - start, 1)}


def figures(path: Path) -> dict[str, Any]:
    """Dev loss and BLEU of the last evaluation, its curve, and the bytes of a step."""
    evals = [json.loads(line) for line in (path / "evals.jsonl").read_text().splitlines()]
    steps = [json.loads(line) for line in (path / "steps.jsonl").read_text().splitlines()]
    timing = [json.loads(line) for line in (path / "timing.rank-000.jsonl").read_text().splitlines()]
    first = [row for row in evals if row["dev_set"] == evals[0]["dev_set"]]
    return {
        "dev_loss": round(first[-1]["loss"], 4),
        **bleu(path, first[-1]["step"], first[-1]["dev_set"]),
        "curve": [(row["step"], round(row["loss"], 4), row["bleu"]) for row in first],
        "steps": len(steps),
        "target_tokens": sum(row["target_tokens"] for row in steps),
        "train_loss": round(sum(row["nll"] for row in steps[-50:]) / len(steps[-50:]), 4),
        "sent_bytes_per_step": round(sum(row["sent_bytes"] for row in timing) / len(timing)),
        "median_step_seconds": sorted(row["step_seconds"] for row in steps)[len(steps) // 2],
    }


def bleu(path: Path, step: int, dev_set: str) -> dict[str, Any]:
    """BLEU of the sentences that were translated, with its 95 % interval."""
    from dragoman.run.folder import RunFolder
    from dragoman.score import score

    lines = RunFolder(path).eval_path(step, dev_set).read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["hypothesis"] is not None]
    if not rows:
        return {"bleu": None}
    found = score([row["hypothesis"] for row in rows], [row["reference"] for row in rows], "de").bleu
    return {"bleu": round(found.value, 2), "bleu_interval": [round(found.low, 2), round(found.high, 2)]}


if __name__ == "__main__":
    main()
