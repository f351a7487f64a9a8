"""Training speed of other toolkits on one GPU: eole 0.6.4, JoeyNMT 2.3.0 and the Hugging Face Trainer (MarianMT).

    python benchmarks/peers_gpu.py [--toolkits dragoman,eole] [--logs DIR] [--site DIR] [--text PREFIX]

All train Transformer-base with dropout 0.1 and label smoothing 0.1, in bf16 (JoeyNMT: fp16, which is what it has), on
batches of about 25,600 tokens and on the same text: synthetic pairs of the lengths of WMT text, or PREFIX.src,
PREFIX.tgt, PREFIX.dev.src and PREFIX.dev.tgt, already cut into pieces (pairs of more than 120 pieces are left out).
`--site` is a folder with the toolkits, made by benchmarks/peers/collect.sh, where nothing can be installed.
Settings: benchmarks/peers.

Prints one JSON line per toolkit; Hugging Face is there twice, plain and with torch_compile. Real target tokens are
counted: EOS yes, padding no. They are read from each toolkit's own log, from the warm-up to the last step:
- eole, every 50 steps: `bsz: SOURCE/TARGET/SENTENCES` and `SOURCE/TARGET tok/s`, the second figure of each, are target
  positions in the loss that are not padding: EOS counted, BOS not. A step took bsz divided by tok/s.
- JoeyNMT, every 50 steps: `Tokens per Sec` counts the target after BOS without padding: EOS counted. The time is that
  between the lines' own timestamps, the tokens are that time multiplied by the rate.
- Hugging Face: labels that are not ignored, counted in training_step; time between two points with the GPU idle,
  without the steps in which torch compiled once more.
Starting up, reading text and compiling lie in the warm-up. A toolkit that fails gives a line with `error`.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

PEERS = Path(__file__).resolve().parent / "peers"
NAMES = ("dragoman", "eole", "joeynmt", "huggingface", "huggingface-compiled")
MAX_LENGTH = 120  # pieces of a pair's longer side
MAX_WORDS = 40_000  # of a vocabulary; the synthetic text has 32,000
SPECIAL = ("<unk>", "<pad>", "<s>", "</s>")
DEV_PAIRS = 200
SAMPLE_SECONDS = 2


@dataclass(frozen=True)
class Scale:
    """How large the models, batches and runs are. The configs in peers/ take their values from these names."""

    layers: int = 6
    heads: int = 8
    hidden: int = 512
    ffn: int = 2048
    batch_tokens: int = 25_600
    batch_pairs: int = 896  # the Trainer counts pairs: 896 of the synthetic text hold about 26,350 target tokens
    bucket: int = 262_144
    workers: int = 4
    pairs: int = 90_000
    steps: int = 150
    report: int = 50
    warmup: int = 50
    trainer_steps: int = 100  # an epoch has 101: its last batch is smaller, and all is compiled once more
    trainer_warmup: int = 50
    cuda: bool = True


TINY = Scale(
    2, 2, 64, 128, 1024, 32, 1000, 1, 1000, steps=5, report=1, warmup=2, trainer_steps=15, trainer_warmup=5,
    cuda=False,
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What was trained between the warm-up and the last step."""

    steps: int
    tokens: float
    seconds: float


@dataclass(frozen=True)
class Toolkit:
    name: str
    package: str
    command: list[str]
    read: Callable[[str, Scale], Figures]
    settings: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolkits", default=",".join(NAMES), help=f"default: {','.join(NAMES)}")
    parser.add_argument("--logs", type=Path, help="keep the raw logs in this folder")
    parser.add_argument("--work", type=Path, help="folder for text, configs and models (default: a temporary one)")
    parser.add_argument("--text", type=Path, metavar="PREFIX", help="pre-tokenised text instead of the synthetic one")
    parser.add_argument("--site", type=Path, help="folder with the toolkits, put first on their PYTHONPATH")
    parser.add_argument("--limit", type=float, default=300, help="seconds that one toolkit may take (default 300)")
    # A few steps of a toy model on the CPU, to try configs and log reading where there is no GPU.
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = options.toolkits.split(",")
    if unknown := set(chosen) - set(NAMES):
        parser.error(f"unknown toolkit {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if not options.tiny and not clocks_now():
        parser.error("nvidia-smi sees no GPU here")
    with tempfile.TemporaryDirectory() as spare:
        work, logs = ((path or Path(spare)).resolve() for path in (options.work, options.logs or options.work))
        work.mkdir(parents=True, exist_ok=True)
        logs.mkdir(parents=True, exist_ok=True)
        measure(chosen, options, work, logs)


def measure(chosen: list[str], options: argparse.Namespace, work: Path, logs: Path) -> None:
    scale = TINY if options.tiny else Scale()
    write_text(work, options.text, scale.pairs)
    num_words = write_vocabulary(work)
    environment = peer_environment(options.site)
    versions = installed_versions(environment)
    for toolkit in toolkits(work, scale, num_words):
        if toolkit.name not in chosen:
            continue
        log = logs / f"{toolkit.name}.log"
        status = run(toolkit.command, work, environment, log, options.limit)
        line = {
            "benchmark": "peers_gpu",
            "toolkit": toolkit.name,
            "version": versions.get(toolkit.package),
            **outcome(toolkit, log, scale, status, options.limit),
            "text": options.text.name if options.text else "synthetic",
            "settings": toolkit.settings,
            "torch": versions.get("torch"),
            **gpu_state(clocks_of(log)),
            "date": time.strftime("%Y-%m-%d %H:%M"),
        }
        print(json.dumps(line), flush=True)


def toolkits(work: Path, scale: Scale, num_words: int) -> list[Toolkit]:
    """Every run there is, its config written to the work folder."""
    values = {**asdict(scale), "work": str(work), "vocab": num_words, "max_length": MAX_LENGTH}
    values |= {"gpu_ranks": [0] if scale.cuda else [], "eole_dtype": "bf16" if scale.cuda else "fp32"}
    for name in ("eole.yaml", "joeynmt.yaml"):
        (work / name).write_text(string.Template((PEERS / name).read_text()).substitute(values))
    python = sys.executable
    eole = [python, "-c", "from eole.bin.main import main; main()", "train", "-config", str(work / "eole.yaml")]
    joeynmt = [python, "-m", "joeynmt", "train", str(work / "joeynmt.yaml"), "--skip-test"]
    dragoman = [python, str(PEERS / "dragoman_trainer.py"), "--settings", json.dumps(values)]
    marian = [python, str(PEERS / "marian_trainer.py"), "--settings"]
    shape = f"{scale.layers}+{scale.layers} layers, {scale.hidden}/{scale.ffn}, {scale.heads} heads"
    size = f"{shape}, {num_words} words, dropout 0.1, smoothing 0.1"
    tokens, pairs = f"{scale.batch_tokens} padded tokens a batch", f"{scale.batch_pairs} pairs a batch"
    bf16, fp16 = ("bf16", "fp16") if scale.cuda else ("fp32", "fp32")
    by_bucket = f"buckets of {scale.bucket} pairs, {scale.workers} workers"
    by_length = f"grouped by length, fused AdamW, {scale.workers} workers"
    return [
        Toolkit("dragoman", "dragoman", dragoman, read_marian, f"{size}, {bf16}, {scale.batch_tokens} tokens a batch"),
        Toolkit("eole", "eole", eole, read_eole, f"{size}, {bf16} autocast, {tokens}, {by_bucket}, AdamW"),
        Toolkit("joeynmt", "joeynmt", joeynmt, read_joeynmt, f"{size}, {fp16} autocast, {tokens}, no bucketing, AdamW"),
        Toolkit(
            "huggingface", "transformers", [*marian, json.dumps(values)], read_marian,
            f"{size}, {bf16} autocast, {pairs}, {by_length}",
        ),
        Toolkit(
            "huggingface-compiled", "transformers", [*marian, json.dumps(values), "--compile"], read_marian,
            f"{size}, {bf16} autocast, torch_compile, {pairs}, {by_length}",
        ),
    ]  # fmt: skip


def write_text(work: Path, prefix: Path | None, num_pairs: int) -> None:
    """text.src, text.tgt, text.dev.src and text.dev.tgt, the same for every toolkit."""
    for part, count in (("", num_pairs), (".dev", DEV_PAIRS)):
        pairs = given_pairs(f"{prefix}{part}") if prefix else synthetic_pairs(count)
        with (work / f"text{part}.src").open("w") as sources, (work / f"text{part}.tgt").open("w") as targets:
            for source, target in pairs:
                sources.write(source + "\n")
                targets.write(target + "\n")


def given_pairs(prefix: str) -> Iterable[tuple[str, str]]:
    """Pairs that every toolkit keeps: JoeyNMT drops long ones, Marian has no position for them."""
    with Path(prefix + ".src").open() as sources, Path(prefix + ".tgt").open() as targets:
        for source, target in zip(sources, targets, strict=True):
            if 0 < len(source.split()) <= MAX_LENGTH and 0 < len(target.split()) <= MAX_LENGTH:
                yield source.strip(), target.strip()


def synthetic_pairs(num_pairs: int) -> Iterable[tuple[str, str]]:
    """Log-normal lengths as in WMT text, words by Zipf's law: good for speed, nothing to learn."""
    random, num_words = np.random.default_rng(0), 32_000
    source_lengths = np.clip(np.exp(random.normal(3.15, 0.6, num_pairs)), 3, 100).astype(int)
    ratios = np.exp(random.normal(0.05, 0.15, num_pairs))
    target_lengths = np.clip(source_lengths * ratios, 3, 110).astype(int)
    chances = 1 / np.arange(1, num_words + 1)
    words = np.array([f"w{i}" for i in range(num_words)])
    sides = []
    for lengths in (source_lengths, target_lengths):
        drawn = words[random.choice(num_words, size=lengths.sum(), p=chances / chances.sum())]
        sides.append([" ".join(sentence) for sentence in np.split(drawn, np.cumsum(lengths)[:-1])])
    return zip(*sides, strict=True)


def write_vocabulary(work: Path) -> int:
    """One vocabulary for both sides, in the two formats; returns its size without special symbols."""
    counts: Counter[str] = Counter()
    for side in ("src", "tgt"):
        with (work / f"text.{side}").open() as lines:
            for line in lines:
                counts.update(line.split())
    common = [(word, count) for word, count in counts.most_common(MAX_WORDS) if word not in SPECIAL]
    (work / "vocab.joeynmt").write_text("".join(f"{word}\n" for word in (*SPECIAL, *(word for word, _ in common))))
    (work / "vocab.eole").write_text("".join(f"{word}\t{count}\n" for word, count in common))
    return len(common)


def peer_environment(site: Path | None) -> dict[str, str]:
    """One GPU even where there are several: the Trainer would spread over all of them."""
    paths = [str(site.resolve())] if site else []
    paths += [path for path in [os.environ.get("PYTHONPATH")] if path]
    ours = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **ours, "CUDA_VISIBLE_DEVICES": gpu_index(), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def gpu_index() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def installed_versions(environment: dict[str, str]) -> dict[str, str]:
    """As the toolkits' processes see them; a package that is not there has no entry."""
    code = (
        "import importlib.metadata as m, json; found = [(d.name, d.version) for d in m.distributions() if d.name];"
        "print(json.dumps(dict(reversed(found))))"  # the first of a name is the one that is imported
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def run(command: list[str], work: Path, environment: dict[str, str], log: Path, limit: float) -> int | None:
    """The exit status, or None when the time was up. Clocks are sampled while the GPU works: idle ones say nothing."""
    deadline = time.monotonic() + limit
    with log.open("w") as output, clocks_of(log).open("w") as samples:
        process = subprocess.Popen(
            command, cwd=work, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            while time.monotonic() < deadline:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(SAMPLE_SECONDS)
                samples.write(clocks_now())
        finally:
            stop_group(process)
    return None


def clocks_of(log: Path) -> Path:
    return log.with_suffix(".clocks.csv")


def clocks_now() -> str:
    """`NVIDIA H200, 1980, 3201, 97`: name, SM and memory clock in MHz, per cent busy; nothing where nobody can tell."""
    query = ["nvidia-smi", "-i", gpu_index(), "--query-gpu=name,clocks.sm,clocks.mem,utilization.gpu"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            [*query, "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    return ""


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """The toolkit and the workers that read text for it; a process that went by itself may have left some behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def outcome(toolkit: Toolkit, log: Path, scale: Scale, status: int | None, limit: float) -> dict[str, Any]:
    """Speed, if the last step was reached (a toolkit may fail afterwards, in saving its model), or the error."""
    text = log.read_text(errors="replace")
    try:
        figures = toolkit.read(text, scale)
    except (ValueError, ZeroDivisionError) as error:
        how = f"stopped after {limit:.0f} s" if status is None else f"exit status {status}, {error}"
        return {"error": f"{how}; last line of its log: {text.strip().rpartition(chr(10))[2]}"}
    return {
        "target_tokens_per_second": round(figures.tokens / figures.seconds),
        "ms_per_step": round(1000 * figures.seconds / figures.steps, 2),
        "target_tokens_per_step": round(figures.tokens / figures.steps),
        "measured_steps": figures.steps,
        "exit_status": status,
    }


def read_eole(log: str, scale: Scale) -> Figures:
    """`Step 50/  250; ... bsz: 18915/20013/726; 214070/226500 tok/s; ...`"""
    found = re.findall(r"Step\s+(\d+)/.*?bsz:\s*\d+/\s*(\d+)/\s*\d+;\s*\d+/\s*(\d+) tok/s", log)
    reports = [(int(tokens) * scale.report, int(rate)) for step, tokens, rate in found if int(step) > scale.warmup]
    expect_reports(len(reports), scale)
    seconds = sum(tokens / rate for tokens, rate in reports)
    return Figures(len(reports) * scale.report, sum(tokens for tokens, _ in reports), seconds)


def read_joeynmt(log: str, scale: Scale) -> Figures:
    """`2026-11-15 12:00:00,123 - INFO - ... - Epoch   1, Step:       50, ... Tokens per Sec:    52000, ...`"""
    pattern = r"^(\S+ \S+) - INFO - \S+ - Epoch\s+(\d+), Step:\s+(\d+),.*Tokens per Sec:\s+(\d+)"
    found = [
        (datetime.fromisoformat(moment.replace(",", ".")), epoch, int(step), int(rate))
        for moment, epoch, step, rate in re.findall(pattern, log, re.MULTILINE)
    ]
    expect_reports(sum(step > scale.warmup for _, _, step, _ in found), scale)
    parts = [  # a report that spans two epochs is left out: its rate is of the second one only
        ((now - before).total_seconds(), rate)
        for (before, epoch_before, _, _), (now, epoch, step, rate) in itertools.pairwise(found)
        if step > scale.warmup and epoch == epoch_before
    ]
    if not parts:
        raise ValueError("no two reports in one epoch")
    seconds = sum(part for part, _ in parts)
    return Figures(len(parts) * scale.report, sum(part * rate for part, rate in parts), seconds)


def expect_reports(num_reports: int, scale: Scale) -> None:
    expected = (scale.steps - scale.warmup) // scale.report
    if num_reports != expected:
        raise ValueError(f"{num_reports} of {expected} reports after the warm-up")


def read_marian(log: str, scale: Scale) -> Figures:
    """`measured {"steps": 80, "tokens": 2040000, "seconds": 8.9}`"""
    found = re.search(r"^measured (.*)$", log, re.MULTILINE)
    if not found:
        raise ValueError("the last step was not reached")
    return Figures(**json.loads(found[1]))


def gpu_state(clocks: Path) -> dict[str, Any]:
    """Median clocks of the moments at which the GPU was mostly busy."""
    rows = [line.split(", ") for line in clocks.read_text().splitlines()]
    samples = [row for row in rows if len(row) == 4 and row[1].isdigit() and row[2].isdigit()]
    busy = [row for row in samples if row[3].isdigit() and int(row[3]) >= 50] or samples
    if not busy:
        return {"gpu": None, "sm_mhz": None, "memory_mhz": None}
    sm, memory = (round(statistics.median(int(row[column]) for row in busy)) for column in (1, 2))
    return {"gpu": busy[0][0], "sm_mhz": sm, "memory_mhz": memory}


if __name__ == "__main__":
    main()
