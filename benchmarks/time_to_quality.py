"""How good a model is after so many seconds: `dragoman train` from prepared data, start-up and compilation included.

    python benchmarks/time_to_quality.py --data DIR [--recipe base] [--seconds 120] [--set KEY=VALUE ...]
    python benchmarks/time_to_quality.py --data DIR --variants FILE.json

Trains for the given wall-clock time, all of it counted from the command's start, with a schedule that ends then, and
translates the test set of the data folder with beam 4. One JSON line each: BLEU, and the dev curve by seconds. FILE.json
holds a list of `{"name": ..., "recipe": ..., "seconds": ..., "set": [...]}`, run one after the other; "steps" saves the
trial that finds out how many steps fit, "data" names another data folder, "init" an earlier variant to start from.
`--test none` leaves the test set out, for screening by the dev set; where the recipe averages checkpoints, last and
average are compared all the same. `--cold` begins with no compiled kernel, as on a machine that never trained.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dragoman.data.shards import open_shards
from dragoman.score import quick_bleu_chrf
from dragoman.translate.translator import Translator
from gpu_state import around

TRIAL_STEPS = 120
SPARE_SECONDS = 2.0
BEAM = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--variants", type=Path)
    parser.add_argument("--test", default="beam4", choices=["beam4", "none"])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--keep", type=Path, help="keep the run folders here")
    options = parser.parse_args()
    given = {"name": options.recipe, "recipe": options.recipe, "seconds": options.seconds, "set": options.set}
    variants = read_variants(options.variants, parser) if options.variants else [given]
    with tempfile.TemporaryDirectory() as spare:
        folder = options.keep or Path(spare)
        for number, variant in enumerate(variants):
            run = folder / variant["name"]
            if run.exists():
                parser.error(f"{run} is there already: a run would go on and not begin")
            merged = {**given, **variant}
            if "init" in merged:
                merged["init"] = folder / merged["init"]
            data = Path(merged.get("data", options.data))
            steps = merged.get("steps") or steps_within(merged, data, run)
            if options.cold:
                os.environ["TRITON_CACHE_DIR"] = str(Path(spare) / f"kernels-{number}")
            print(json.dumps(outcome(merged, steps, data, run, options.test == "beam4")), flush=True)


def read_variants(path: Path, parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    try:
        variants = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        parser.error(f"cannot read {path}: {error}")
    if not isinstance(variants, list) or not all(isinstance(each, dict) and "name" in each for each in variants):
        parser.error(f"{path} is no list of variants with names")
    return variants


def outcome(variant: dict[str, Any], num_steps: int, data: Path, run: Path, is_tested: bool) -> dict[str, Any]:
    """Train in the time given, and judge."""
    limit = variant["seconds"] / 60  # of the clock that begins with the run's first step: never the shorter one
    began = time.time()
    train(variant, data, run, [f"train.max_steps={num_steps}", f"train.max_minutes={limit:.4f}"])
    seconds = time.time() - began
    steps, evals = read_lines(run / "steps.jsonl"), read_lines(run / "evals.jsonl")
    result = {
        "benchmark": "time_to_quality",
        "name": variant["name"],
        "recipe": variant["recipe"],
        "settings": variant["set"],
        "seconds_allowed": variant["seconds"],
        "seconds_of_training": round(steps[-1]["time"] - began, 1),
        "seconds_with_last_evaluation": round(seconds, 1),
        "steps": len(steps),
        "planned_steps": num_steps,
        "target_tokens": sum(step["target_tokens"] for step in steps),
        "last_rate": steps[-1]["learning_rate"],
        "dev": [[round(e["time"] - began, 1), round(e["loss"], 4), e["bleu"] and round(e["bleu"], 2)] for e in evals],
    }
    if is_tested or (run / "checkpoints/average").exists():
        result |= judged(run, data)
    return {**result, **around()}


def steps_within(variant: dict[str, Any], data: Path, run: Path) -> int:
    """Steps that the time allows, by a short trial of the same settings."""
    trial = run.with_name(run.name + "-trial")
    quiet = ["evaluate.every_steps=1000000", "evaluate.decode=false", "checkpoint.every_steps=1000000"]
    began = time.time()
    train(variant, data, trial, [*quiet, f"train.max_steps={TRIAL_STEPS}"])
    moments = [step["time"] for step in read_lines(trial / "steps.jsonl")]
    pace = (moments[-2] - moments[9]) / (len(moments) - 11)
    spare = variant.get("spare", SPARE_SECONDS)  # for evaluations on the way
    return max(TRIAL_STEPS, int((variant["seconds"] - (moments[0] - began) - spare) / pace))


def train(variant: dict[str, Any], data: Path, run: Path, settings: list[str]) -> None:
    """`dragoman train` with the variant's settings and these."""
    command = [sys.executable, "-m", "dragoman.cli", "train", variant["recipe"], "--data", str(data), "--run", str(run)]
    init = ["--init", str(variant["init"])] if "init" in variant else []
    changes = [word for each in [*variant["set"], *settings] for word in ("--set", each)]
    code = subprocess.run([*command, *init, *changes], check=False, stdout=sys.stderr).returncode
    if code:
        sys.exit(code)  # it has said why


def judged(run: Path, data: Path) -> dict[str, Any]:
    """Scores of the last checkpoint on the test sets, and of the average where the recipe makes one."""
    began = time.time()
    result = {"test": scores_of(run / "checkpoints/last", data)}
    if (run / "checkpoints/average").exists():
        result["test_of_average"] = scores_of(run / "checkpoints/average", data)
    return {**result, "test_seconds": round(time.time() - began, 1)}


def scores_of(model: Path, data: Path) -> dict[str, Any]:
    """BLEU and chrF of every test set; `dragoman evaluate` gives the same with intervals, and takes longer."""
    translator, shards = Translator(str(model)), open_shards(data)
    language, scores = shards.manifest.target_language, {}
    for test_set in shards.test_sets:
        sources, references = test_set.lines()
        texts = [best[0].text for best in translator.translate(sources, beam=BEAM)]
        found = quick_bleu_chrf(texts, references, language)
        scores[test_set.name] = {"bleu": round(found.bleu, 2), "chrf": round(found.chrf, 2)}
    return scores


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
