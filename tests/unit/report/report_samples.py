"""A made-up run of any length, written with the real writer."""

import math
import random
from pathlib import Path

from dragoman.config import Recipe
from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.records import (
    Attempt,
    DataSummary,
    EvalRecord,
    EvalSentence,
    Event,
    Host,
    Manifest,
    SideSize,
    StepRecord,
    TimingRecord,
)
from dragoman.run.writer import RunWriter, write_manifest

COMMAND = "dragoman train phrasebook --data data --run demo --workers 2"
START = 1_794_732_000.0
SENTENCES = [
    ("The old captain sold his boat yesterday.", "Der alte Kapitän hat gestern sein Boot verkauft."),
    ("Do the children like to swim in the lake?", "Schwimmen die Kinder gern im See?"),
    ("She did not open the letter because she was tired.", "Sie öffnete den Brief nicht, weil sie müde war."),
    ("On 3 May we will visit two museums.", "Am 3. Mai werden wir zwei Museen besuchen."),
    ("The green bicycle belongs to my neighbour.", "Das grüne Fahrrad gehört meinem Nachbarn."),
]


def sample_manifest(corpora: tuple[str, ...] = ("phrasebook",), num_attempts: int = 1) -> Manifest:
    recipe = Recipe.model_validate(
        {
            "name": "phrasebook",
            "data": {"corpora": list(corpora), "languages": "en-de"},
            "train": {"max_steps": 2000},
        }
    )
    english = SideSize("en", 3_254_112, 62_000, 3_120_400, 60_000, 4_310_000, 812_000)
    german = SideSize("de", 3_761_480, 62_000, 3_604_900, 60_000, 5_020_000, 905_000)
    return Manifest(
        name="demo",
        created=START,
        recipe=recipe.model_dump(mode="json"),
        recipe_hash="9c1f4be2a7d0",
        versions={"dragoman": "0.1.0", "python": "3.11.9", "torch": "2.13.0+cpu", "numpy": "2.4.6"},
        world_size=2,
        device="cpu",
        precision="fp32",
        num_parameters=1_204_224,
        data=DataSummary(
            "data/phrasebook", "5e884898da28", "en-de", 60_000, english, german,
            dict.fromkeys(corpora, 60_000), {"dev": 1_000}, {"test": 1_000}, 4_000,
        ),
        hosts=(Host("anna", "AMD EPYC 7763", 2, 24 * 2**30),),
        attempts=tuple(
            Attempt(number, START + 900 * (number - 1), COMMAND, 2)
            for number in range(1, num_attempts + 1)
        ),
        git_commit="0f3c2a9d1e",
    )  # fmt: skip


def sample_step(step: int, attempt: int, time: float, draw: random.Random) -> StepRecord:
    nll = 1.2 + 6.5 * math.exp(-step / 350) + draw.gauss(0, 0.06)
    rate = 2.0 * 128**-0.5 * min(step**-0.5, step * 400**-1.5)
    norm = 0.4 + 4 * math.exp(-step / 120) + abs(draw.gauss(0, 0.15)) + (9 if draw.random() < 0.002 else 0)
    seconds = 0.095 + abs(draw.gauss(0, 0.008)) + (0.2 if draw.random() < 0.003 else 0)
    return StepRecord(attempt, time, step, nll + 0.55, nll, rate, norm, 920, draw.randint(970, 1024), 84, seconds)


def sample_timings(step: StepRecord, evaluates: bool) -> list[TimingRecord]:
    parts = [step.step_seconds * share for share in (0.02, 0.28, 0.43, 0.17, 0.06)]
    validation, checkpoint = (6.0, 0.3) if evaluates else (0.0, 0.0)
    other = step.step_seconds - sum(parts)
    wall = step.step_seconds + validation + checkpoint
    return [
        TimingRecord(step.attempt, step.time, step.step, rank, "anna", *parts, validation, checkpoint, other, wall)
        for rank in (0, 1)
    ]


def sample_eval(step: int, attempt: int, time: float, max_steps: int) -> EvalRecord:
    loss = 1.05 + 5 * math.exp(-step / (0.18 * max_steps))
    bleu = 78 * (1 - math.exp(-step / (0.3 * max_steps)))
    signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    chrf = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"
    return EvalRecord(
        attempt, time, step, "dev", loss, loss - 0.12 * step / max_steps, bleu, 12 + bleu, signature, chrf,
        1000, 200, 14_000, 2.0, 4.0,
    )  # fmt: skip


def sample_sentences(step: int, max_steps: int) -> list[EvalSentence]:
    found = []
    for index, (source, target) in enumerate(SENTENCES):
        words = target.split()
        known = max(1, round(len(words) * step / max_steps))
        hypothesis = " ".join(words[:known] + ["die"] * (min(len(words), 6) - known))
        found.append(EvalSentence(index, source, target, hypothesis, 12.5, len(words) + 1))
    return found


def write_checkpoint(folder: RunFolder, step: int) -> dict[str, int]:
    sizes = {
        "weights.safetensors": 48_169, "optimizer.safetensors": 96_338, "state.json": 812,
        "recipe.toml": 1_920, "vocab.model": 30_215,
    }  # fmt: skip
    path = folder.step_checkpoint(step)
    path.mkdir(parents=True)
    for name, size in sizes.items():
        (path / name).write_bytes(b"\0" * size)
    return sizes


def write_sample_run(
    path: Path, num_steps: int = 2000, eval_every: int = 200, crash_at: int | None = None
) -> RunFolder:
    """With `crash_at`, a first attempt dies there and a second one begins at the evaluation before."""
    folder = create_run_folder(path)
    write_manifest(folder, sample_manifest(num_attempts=2 if crash_at else 1))
    draw = random.Random(7)
    plan = [(1, 1, num_steps)]
    if crash_at:
        plan = [(1, 1, crash_at), (2, crash_at // eval_every * eval_every + 1, num_steps)]
    for attempt, first, last in plan:
        with RunWriter(folder, attempt) as writer:
            time = START + 900 * (attempt - 1)
            writer.write(Event(attempt, time, "resumed" if attempt > 1 else "started", first - 1))
            for number in range(first, last + 1):
                time += 0.1
                step = sample_step(number, attempt, time, draw)
                evaluates = number % eval_every == 0 or number == num_steps
                writer.write(step)
                for timing in sample_timings(step, evaluates):
                    writer.write(timing)
                if evaluates:
                    time += 6.3
                    writer.write(sample_eval(number, attempt, time, num_steps))
                    writer.write_sentences(number, "dev", sample_sentences(number, num_steps))
            if last == num_steps:
                writer.write(Event(attempt, time, "finished", last, {"reason": "max_steps"}))
    last_steps = list(range(eval_every, num_steps + 1, eval_every))[-3:]
    for step in last_steps:
        write_checkpoint(folder, step)
    if last_steps:
        for name in ("best-loss", "best-bleu", "last"):
            folder.set_pointer(name, last_steps[-1])
    return folder
