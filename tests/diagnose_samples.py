"""Made-up runs in memory, healthy ones and ones that something is wrong with. No files."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.config import Recipe
from dragoman.plan.schedule import lr_at
from dragoman.run.folder import RunFolder
from dragoman.run.promise import ComputeProfile, LinkProfile, Prediction, Profile, StepSplit
from dragoman.run.reader import Checkpoint, CheckpointFile, RunRecord
from dragoman.run.records import (
    Attempt,
    DataSummary,
    EvalRecord,
    EvalSentence,
    Event,
    Exchange,
    Host,
    Manifest,
    SideSize,
    StepRecord,
    TimingRecord,
)
from dragoman.run.samples import CardSample, GpuSample, SystemSample

START = 1_794_732_000.0
NUM_PARAMETERS = 1_182_208
WORDS = (
    "der", "alte", "Kapitän", "hat", "gestern", "sein", "Boot", "am", "See", "verkauft", "und", "müde", "nach", "Hause",
)  # fmt: skip


@dataclass(frozen=True)
class MemoryRun(RunRecord):
    """A run whose evaluated sentences lie in memory too."""

    sentences: dict[tuple[int, str], list[EvalSentence]] = field(default_factory=dict)

    def read_eval_sentences(self, step: int, dev_set: str) -> list[EvalSentence]:
        return self.sentences.get((step, dev_set), [])


@dataclass(frozen=True)
class Shape:
    """What a made-up run is like; the defaults are one healthy worker on a noisy processor."""

    num_steps: int = 300
    num_hosts: int = 1
    ranks_per_host: int = 1
    compute: Callable[[int, int], float] = lambda step, rank: 0.1
    data: Callable[[int, int], float] = lambda step, rank: 0.0005
    transfer: Callable[[int], float] = lambda step: 0.004
    validation_seconds: float = 2.0
    checkpoint_seconds: float = 0.1
    nll: Callable[[int], float] = lambda step: 1.2 + 6 * (1 + step / 20) ** -0.8
    dev_loss: Callable[[int], float] = lambda step: 1.1 + 6 * (1 + step / 20) ** -0.8
    train_loss: Callable[[int], float] = lambda step: 1.0 + 6 * (1 + step / 20) ** -0.8
    known_words: Callable[[int], float] = lambda step: step / (step + 100)
    norm: Callable[[int], float] = lambda step: 0.4 + 3 / (1 + step / 20)
    eval_every: int = 30
    noise: float = 0.12  # of the seconds of a step
    sent_bytes: int = 4_728_832
    capacity: float = 118e6
    alone: float | None = 118e6
    claimed_bits: int = 1_000_000_000
    clock_ahead: float = 3.7  # seconds, of the second host
    optim: dict = field(default_factory=lambda: {"warmup_steps": 50, "learning_rate": 0.003, "schedule": "cosine"})
    price_per_hour: float | None = None
    has_gpus: bool = False
    gpu: GpuSample | None = None
    memory_share: float = 0.3
    attempts: tuple[tuple[int, int], ...] = ()  # (first, last) of each; () is one from 1 to num_steps
    is_finished: bool = True


def build(shape: Shape) -> MemoryRun:
    draw = random.Random(5)
    ranks = [f"{'abcd'[host]}" for host in range(shape.num_hosts) for _ in range(shape.ranks_per_host)]
    spans = shape.attempts or ((1, shape.num_steps),)
    steps, lost, timings, evals, events, samples = [], [], [], [], [], []
    sentences: dict[tuple[int, str], list[EvalSentence]] = {}
    recipe = make_recipe(shape)
    now = START
    starts = []
    for attempt, (first, last) in enumerate(spans, start=1):
        now += 60.0 if attempt > 1 else 0.0
        starts.append(now)
        events.append(Event(attempt, now, "resumed" if first > 1 else "started", first - 1))
        offsets = {host: shape.clock_ahead if host != "a" else 0.0 for host in set(ranks)}
        events.append(Event(attempt, now, "clocks", first - 1, {"offsets": offsets}))
        now += 1.5
        next_first = spans[attempt][0] if attempt < len(spans) else shape.num_steps + 1
        for step in range(first, last + 1):
            begin = now
            line = one_step(shape, draw, step, ranks)
            now = begin + line.seconds
            evaluates = step % shape.eval_every == 0 or step == shape.num_steps
            record = StepRecord(
                attempt, now, step, shape.nll(step) + 0.5 + draw.gauss(0, 0.04), shape.nll(step) + draw.gauss(0, 0.04),
                lr_at(step, recipe.optim, recipe.model.d_model, recipe.train.max_steps),
                shape.norm(step) * (1 + abs(draw.gauss(0, 0.2))), 900, 1_000, 80, line.seconds,
            )  # fmt: skip
            extra = (shape.validation_seconds, shape.checkpoint_seconds) if evaluates else (0.0, 0.0)
            now += sum(extra)
            if step >= next_first:
                lost.append(record)
            else:
                steps.append(replace(record, time=now))
                timings += timing_lines(shape, line, attempt, step, begin, now, ranks, extra)
                if evaluates:
                    evals.append(one_eval(shape, attempt, now, step))
                    sentences[step, "dev"] = eval_sentences(shape, step)
                    events.append(Event(attempt, now, "checkpoint", step, {"files": checkpoint_files()}))
        if attempt == len(spans) and shape.is_finished and last == shape.num_steps:
            events.append(Event(attempt, now, "finished", last, {"reason": "max_steps"}))
    for host in sorted(set(ranks)):
        samples += host_samples(shape, draw, host, now)
    return MemoryRun(
        folder=RunFolder(Path("/nowhere")),
        manifest=make_manifest(shape, recipe, ranks, starts),
        steps=tuple(steps),
        timings=tuple(timings),
        evals=tuple(evals),
        events=tuple(events),
        checkpoints=(make_checkpoint(steps[-1].step),) if steps else (),
        lost_steps=tuple(lost),
        num_bad_lines={},
        samples=tuple(samples),
        profile=make_profile(shape, recipe),
        prediction=make_prediction(shape) if shape.num_hosts > 1 else None,
        sentences=sentences,
    )


@dataclass(frozen=True)
class Line:
    data: list[float]
    compute: list[float]
    transfer: float
    optimizer: float
    other: float

    @property
    def arrival(self) -> list[float]:
        return [data + compute for data, compute in zip(self.data, self.compute, strict=True)]

    @property
    def seconds(self) -> float:
        return max(self.arrival) + self.transfer + self.optimizer + self.other


def one_step(shape: Shape, draw: random.Random, step: int, ranks: list[str]) -> Line:
    def noisy(seconds: float) -> float:
        hiccup = 3.0 if draw.random() < 0.005 else 1.0
        return seconds * (1 + abs(draw.gauss(0, shape.noise))) * hiccup

    transfer = noisy(shape.transfer(step)) if len(ranks) > 1 else 0.0
    indices = range(len(ranks))
    data, compute = ([noisy(part(step, rank)) for rank in indices] for part in (shape.data, shape.compute))
    return Line(data, compute, transfer, 0.002, 0.001)


def timing_lines(shape, line, attempt, step, begin, now, ranks, extra) -> list[TimingRecord]:
    arrivals = line.arrival
    found = []
    for rank, host in enumerate(ranks):
        ahead = shape.clock_ahead if host != "a" else 0.0
        exchange = max(arrivals) - arrivals[rank] + line.transfer
        is_alone = len(ranks) == 1
        is_first = rank == 0 or ranks[rank - 1] != host
        found.append(
            TimingRecord(
                attempt, now + ahead, step, rank, host, line.data[rank], 0.4 * line.compute[rank],
                0.6 * line.compute[rank], 0.0 if is_alone else exchange, line.optimizer, *extra, line.other,
                line.seconds + sum(extra), 0 if is_alone else shape.sent_bytes,
                round(shape.sent_bytes * 1.02) if is_first and shape.num_hosts > 1 else None,
                None if is_alone else begin + arrivals[rank] + ahead,
            )
        )  # fmt: skip
    return found


def one_eval(shape: Shape, attempt: int, time: float, step: int) -> EvalRecord:
    bleu = 100 * shape.known_words(step)
    return EvalRecord(
        attempt, time, step, "dev", shape.dev_loss(step), shape.train_loss(step), bleu, bleu,
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0", None, 120, 120, 1_500, 0.6, 1.4,
    )  # fmt: skip


def eval_sentences(shape: Shape, step: int) -> list[EvalSentence]:
    """Each sentence has its own difficulty, the same at every step, and a little noise."""
    fixed, loose = random.Random(11), random.Random(step)
    found = []
    for index in range(120):
        words = fixed.sample(WORDS, 8)
        cut = round(len(words) * min(1.0, max(0.0, shape.known_words(step) + loose.gauss(0, 0.05))))
        hypothesis = " ".join(words[:cut] + ["nichts"] * (len(words) - cut))
        loss = shape.dev_loss(step) * fixed.uniform(0.5, 1.5) * (1 + loose.gauss(0, 0.02))
        found.append(EvalSentence(index, "source", " ".join(words), hypothesis, 12 * loss, 12))
    return found


def checkpoint_files() -> dict[str, int]:
    return {
        "weights.safetensors": 4 * NUM_PARAMETERS + 7_000, "optimizer.safetensors": 8 * NUM_PARAMETERS + 9_000,
        "state.json": 880, "recipe.toml": 1_700, "vocab.model": 30_454,
    }  # fmt: skip


def make_checkpoint(step: int) -> Checkpoint:
    files = tuple(CheckpointFile(name, size) for name, size in checkpoint_files().items())
    return Checkpoint(f"step-{step:08d}", step, Path("/nowhere"), files, ("best-loss", "best-bleu", "last"))


def host_samples(shape: Shape, draw: random.Random, host: str, end: float) -> list[SystemSample]:
    """Once a second; the card's rate follows from the bytes of a typical step."""
    typical = one_step(replace(shape, noise=0.0), random.Random(1), 10, ["a"] * shape.num_hosts * shape.ranks_per_host)
    rate = shape.sent_bytes / typical.seconds if shape.num_hosts > 1 else 0
    found = []
    for second in range(1, int(end - START)):
        sent = int(min(rate, 1.0 * shape.capacity) * (1 - abs(draw.gauss(0, 0.02))))
        cards = (
            CardSample("lo", 9_999, 9_999, 9, 9, 0),
            CardSample("eth0", sent, sent, sent // 1_400, sent // 1_400, 0, shape.claimed_bits),
        )
        gpu = shape.gpu or GpuSample(0, 1.0, 10 * 2**30, 16 * 2**30, 250.0, 300.0, 1_500, 1_530, 70)
        ahead = shape.clock_ahead if host != "a" else 0.0
        found.append(
            SystemSample(
                1, START + second + ahead, host, 1.0, 0.9, int(shape.memory_share * 24e9), 24_000_000_000,
                cards=cards, gpus=(gpu,) * shape.ranks_per_host if shape.has_gpus else (),
            )
        )  # fmt: skip
    return found


def make_recipe(shape: Shape) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "phrasebook",
            "model": {"d_model": 128, "num_heads": 4, "d_ffn": 512, "num_encoder_layers": 2, "num_decoder_layers": 2},
            "batch": {"target_tokens": 2_048, "num_microbatches": 2, "max_pieces": 100},
            "optim": shape.optim,
            "train": {"max_steps": shape.num_steps},
        }
    )


def make_manifest(shape: Shape, recipe: Recipe, ranks: list[str], starts: list[float]) -> Manifest:
    english = SideSize("en", 2_275_844, 52_000, 2_175_844, 50_000, 3_563_826, 655_671)
    german = SideSize("de", 2_504_486, 52_000, 2_404_486, 50_000, 3_801_664, 715_819)
    gpus = ("Tesla V100-SXM2-16GB",) * shape.ranks_per_host if shape.has_gpus else ()
    hosts = tuple(
        Host(name, "AMD EPYC", 2, 24_000_000_000, gpus, shape.ranks_per_host, "eth0", shape.claimed_bits)
        for name in sorted(set(ranks))
    )
    settings = {"method": "dense", "precision": "fp32", "every_steps": 1}
    return Manifest(
        name="made-up", created=START, recipe=recipe.model_dump(mode="json"), recipe_hash="9c1f", versions={},
        world_size=len(ranks), device="cuda" if shape.has_gpus else "cpu",
        precision="bf16" if shape.has_gpus else "fp32", num_parameters=NUM_PARAMETERS,
        data=DataSummary(
            "data", "70a444f53dba3e93", "en-de", 50_000, english, german, {"phrasebook": 50_000}, {"dev": 120}, {},
            2_000, {"too_long": 1_500, "duplicate": 90_000},
        ),
        hosts=hosts,
        attempts=tuple(Attempt(number, time, "dragoman train", len(ranks)) for number, time in enumerate(starts, 1)),
        exchange=Exchange(settings, shape.num_hosts), price_per_hour=shape.price_per_hour,
        currency="$" if shape.price_per_hour else None,
    )  # fmt: skip


def make_profile(shape: Shape, recipe: Recipe) -> Profile:
    compute = ComputeProfile(
        "9c1f", "cpu", "fp32", NUM_PARAMETERS, 2, 0.04, 0.06, 0.002, shape.ranks_per_host, 0.001, 200e9
    )
    link = LinkProfile(shape.capacity, 0.0003, shape.alone) if shape.num_hosts > 1 else None
    return Profile(START, (), link, compute)


def make_prediction(shape: Shape) -> Prediction:
    rank = 0
    transfer = shape.transfer(1)
    step = StepSplit(shape.compute(1, rank), transfer, 0.002, shape.data(1, rank))
    return Prediction(
        START, True, "phrasebook", shape.num_hosts, shape.num_hosts * shape.ranks_per_host, "dense fp32",
        shape.num_steps, step, step.total_seconds, step.total_seconds, shape.sent_bytes,
        "1.2 M gradients x 4 bytes x 2 x (2 - 1) / 2 = 4.73 MB", shape.capacity, shape.sent_bytes / shape.capacity,
        step.total_seconds * shape.num_steps, step.total_seconds * shape.num_steps, single_host_step_seconds=0.203,
    )  # fmt: skip


def _overfit(step: int) -> float:
    return 2.0 - 0.5 * min(step, 120) / 120 + 0.35 * max(0, step - 120) / 180


def _noisy_flat(step: int) -> float:
    return 1.4 + 4 * 2.0 ** (-step / 12)


HEALTHY_ONE = Shape()
HEALTHY_TWO = Shape(num_hosts=2)
HEALTHY_TWO_RANKS = Shape(ranks_per_host=2)
NETWORK_BOUND = Shape(
    num_hosts=2,
    transfer=lambda step: 1.9,
    capacity=2.5e6,
    alone=2.5e6,
    num_steps=80,
    eval_every=20,
    price_per_hour=7.10,
)
SUM_LIMITED = Shape(num_hosts=2, transfer=lambda step: 1.9, capacity=2.5e6, alone=4.9e6, num_steps=80, eval_every=20)
INPUT_BOUND = Shape(data=lambda step, rank: 0.2, num_steps=80, eval_every=20)
STRAGGLER = Shape(num_hosts=2, compute=lambda step, rank: 0.1 + 0.15 * rank)
OVERFITTING = Shape(
    dev_loss=_overfit, train_loss=lambda step: 2.0 - 1.5 * step / 300, known_words=lambda step: min(step, 120) / 200
)
DIVERGED = Shape(
    nll=lambda step: 8.0 - 0.03 * step if step < 60 else 300.0 - 0.9 * (step - 60) + 90 * (step // 7 % 3),
    norm=lambda step: 0.5 if step < 60 else 80.0,
    dev_loss=lambda step: 6.5 if step < 60 else 28.0,
    known_words=lambda step: 0.02,
    optim={"warmup_steps": 50, "learning_rate": 3.0, "schedule": "cosine"},
)
UNDERTRAINED = Shape(
    num_steps=60,
    eval_every=10,
    dev_loss=lambda step: 8 - 0.05 * step,
    train_loss=lambda step: 8 - 0.05 * step,
    nll=lambda step: 8 - 0.05 * step,
)
PLATEAU = Shape(dev_loss=_noisy_flat, train_loss=_noisy_flat, nll=_noisy_flat, known_words=lambda step: 0.8)
RESUMED = Shape(attempts=((1, 160), (151, 300)))
CRASHED = Shape(attempts=((1, 140),), is_finished=False)
