"""Makes the runs under `tests/golden/runs` again: tiny real runs, healthy ones and ones that something is wrong with.

    python tests/golden/make.py [NAME ...]        as root on Linux: three of them need emulated hosts

Each takes seconds to a minute. Weights and logs are left out, names of this machine replaced. What every run must be
told is in `verdicts.json`, which this script does not touch.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

RUNS = Path(__file__).parent / "runs"
DRAGOMAN = [sys.executable, "-m", "dragoman"]
SETTINGS = (
    "vocab.size=600",
    "model.d_model=64",
    "model.num_heads=4",
    "model.d_ffn=128",
    "model.num_encoder_layers=2",
    "model.num_decoder_layers=2",
    "batch.target_tokens=3000",
    "batch.num_microbatches=2",
    "batch.max_pieces=60",
    "optim.warmup_steps=60",
    "optim.learning_rate=0.004",
    "train.log_every=10",
    "train.max_steps=240",
    "evaluate.every_steps=20",
    "evaluate.max_decoded=40",
    "evaluate.train_pairs=80",
    "evaluate.num_samples=2",
    "checkpoint.every_steps=1000",
    "checkpoint.keep_last=1",
)
KEPT = ("manifest.json", "profile.json", "prediction.json", "steps.jsonl", "evals.jsonl", "events.jsonl")
KEPT_PATTERNS = ("timing.rank-*.jsonl", "system.*.jsonl", "evals/*/*.jsonl")
# On hosts a rank shares the machine's two cores with another: one thread each.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "DRAGOMAN_DEVICE": "cpu"}


class Kitchen:
    """A scratch folder with prepared data, and the ways to train there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data: dict[int, Path] = {}

    def data(self, num_pairs: int = 4_000) -> Path:
        if num_pairs not in self._data:
            self._data[num_pairs] = prepare(self.folder / f"data-{num_pairs}", num_pairs)
        return self._data[num_pairs]

    def run(self, name: str) -> Path:
        return self.folder / name

    def command(self, name: str, *settings: str, num_pairs: int = 4_000, method: str = "dense") -> list[str]:
        words = ["train", "phrasebook", "--data", str(self.data(num_pairs)), "--run", str(self.run(name))]
        changes = (*SETTINGS, f"sync.method={method}", *settings)
        return [*words, *(part for change in changes for part in ("--set", change))]

    def here(self, name: str, *settings: str, num_pairs: int = 4_000) -> None:
        call([*DRAGOMAN, *self.command(name, *settings, num_pairs=num_pairs)], DRAGOMAN_HOST="a")

    def in_lab(self, name: str, link: list[str], *settings: str, method: str = "dense") -> None:
        train = [*DRAGOMAN, *self.command(name, *settings, method=method), "--hosts", "a,b"]
        call([*DRAGOMAN, "lab", "--hosts", "2", *link, "--", *train])

    @contextlib.contextmanager
    def started(self, name: str, num_steps: int, *settings: str) -> Iterator[None]:
        """A run that has done so many steps; it is killed with everything it started."""
        command = [*DRAGOMAN, *self.command(name, *settings)]
        process = subprocess.Popen(command, env=environment(DRAGOMAN_HOST="a"), start_new_session=True)
        try:
            while num_lines(self.run(name) / "steps.jsonl") < num_steps:
                assert process.poll() is None, "it ended too early"
                time.sleep(0.05)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def prepare(folder: Path, num_pairs: int) -> Path:
    from dragoman.data.phrasebook.generate import phrasebook

    folder.mkdir()
    book = phrasebook(num_train=num_pairs, num_dev=120, num_test=20)
    files: list[str] = []
    for split, prefix in (("train", ""), ("dev", "dev-")):
        for side in ("source", "target"):
            path = folder / f"{split}.{side}"
            path.write_text("".join(f"{getattr(s, side)}\n" for s in getattr(book, split)), encoding="utf-8")
            files += [f"--{prefix}{side}", str(path)]
    options = ["--languages", "en-de", "--out", str(folder / "data"), "--set", "vocab.size=600"]
    call([*DRAGOMAN, "prepare", "phrasebook", *files, *options])
    return folder / "data"


def call(command: list[str], **variables: str) -> None:
    subprocess.run(command, check=True, env=environment(**variables))


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT, **variables}


def num_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def healthy_one(kitchen: Kitchen) -> None:
    kitchen.here("healthy-one")


def healthy_two(kitchen: Kitchen) -> None:
    kitchen.in_lab("healthy-two", ["--link", "1gbit"])


def network_bound(kitchen: Kitchen) -> None:
    kitchen.in_lab("network-bound", ["--link", "20mbit"], "train.max_steps=80")


def sum_limited(kitchen: Kitchen) -> None:
    kitchen.in_lab("sum-limited", ["--link", "40mbit", "--sum"], "train.max_steps=80")


def input_bound(kitchen: Kitchen) -> None:
    """As from a disk that gives a batch only every 0.4 s."""
    job = make_job(kitchen, "input-bound", "train.max_steps=80")
    process = multiprocessing.get_context("spawn").Process(target=_train_with_slow_feed, args=(job,))
    process.start()
    process.join()
    assert process.exitcode == 0


def make_job(kitchen: Kitchen, name: str, *settings: str) -> str:
    from dragoman.recipe import load_recipe
    from dragoman.train.job import make_job as make

    recipe = load_recipe("phrasebook", [*SETTINGS, "sync.method=dense", *settings])
    return make(recipe, kitchen.data(), kitchen.run(name), 1, "dragoman train phrasebook").to_json()


def _train_with_slow_feed(job: str) -> None:
    os.environ |= environment(DRAGOMAN_HOST="a")
    from dragoman.train import feed
    from dragoman.train.rank import leave, main

    quick = feed._step_input

    def slow(*arguments: object) -> object:
        time.sleep(0.4)
        return quick(*arguments)

    feed._step_input = slow
    leave(main(job))


def straggler(kitchen: Kitchen) -> None:
    """Two ranks, each on a core of its own; host b's core also works for somebody else."""
    steps = ("train.max_steps=120",)
    busy = subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"])
    ranks: list[subprocess.Popen[bytes]] = []
    kitchen.data()
    try:
        for rank, host in enumerate("ab"):
            place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29477"}
            command = ["taskset", "-c", str(rank), *DRAGOMAN, *kitchen.command("straggler", *steps)]
            ranks.append(subprocess.Popen(command, env=environment(**place, DRAGOMAN_HOST=host)))
        assert [process.wait() for process in ranks] == [0, 0]
    finally:
        for process in (busy, *ranks):
            process.kill()


def overfitting(kitchen: Kitchen) -> None:
    settings = ("model.dropout=0", "model.ffn_dropout=0", "train.label_smoothing=0", "optim.learning_rate=0.006")
    kitchen.here("overfitting", *settings, num_pairs=200)


def diverged(kitchen: Kitchen) -> None:
    kitchen.here("diverged", "optim.learning_rate=4", "train.max_steps=120")


def undertrained(kitchen: Kitchen) -> None:
    kitchen.here("undertrained", "train.max_steps=100", "evaluate.every_steps=10")


def plateau(kitchen: Kitchen) -> None:
    """A model too small to learn more than how often each piece occurs."""
    size = ("model.d_model=2", "model.num_heads=1", "model.d_ffn=4", "model.dropout=0", "model.ffn_dropout=0")
    depth = ("model.num_encoder_layers=1", "model.num_decoder_layers=1", "batch.target_tokens=1500")
    length = ("train.max_steps=600", "evaluate.every_steps=50", "optim.learning_rate=0.06", "optim.warmup_steps=20")
    kitchen.here("plateau", *size, *depth, *length)


def resumed(kitchen: Kitchen) -> None:
    settings = ("checkpoint.every_steps=50",)
    with kitchen.started("resumed", 130, *settings):
        pass
    kitchen.here("resumed", *settings)


def crashed(kitchen: Kitchen) -> None:
    with kitchen.started("crashed", 110):
        pass


def torn(kitchen: Kitchen) -> None:
    """The disk of a host that died: half lines at the end of its files, one host's samples lost."""
    with kitchen.started("torn", 70):
        pass
    run = kitchen.run("torn")
    for name in ("steps.jsonl", "timing.rank-000.jsonl", "evals.jsonl"):
        data = (run / name).read_bytes()
        (run / name).write_bytes(data[: len(data) - 40])
    for path in run.glob("system.*.jsonl"):
        path.unlink()


RECIPES: tuple[Callable[[Kitchen], None], ...] = (
    healthy_one, healthy_two, network_bound, sum_limited, input_bound, straggler, overfitting, diverged, undertrained,
    plateau, resumed, crashed, torn,
)  # fmt: skip


def keep(run: Path, kept: Path) -> None:
    """Records alone, and nothing that tells of this machine."""
    shutil.rmtree(kept, ignore_errors=True)
    names = [run / name for name in KEPT if (run / name).exists()]
    for path in (*names, *(path for pattern in KEPT_PATTERNS for path in run.glob(pattern))):
        target = kept / path.relative_to(run)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    manifest = json.loads((kept / "manifest.json").read_text(encoding="utf-8"))
    manifest["data"]["path"] = "data"
    manifest["git_commit"] = None
    for attempt in manifest["attempts"]:
        attempt["command"] = "dragoman train phrasebook --data data --run run"
    (kept / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    wanted = sys.argv[1:] or [make.__name__.replace("_", "-") for make in RECIPES]
    with tempfile.TemporaryDirectory() as scratch:
        kitchen = Kitchen(Path(scratch))
        for make in RECIPES:
            name = make.__name__.replace("_", "-")
            if name in wanted:
                make(kitchen)
                keep(kitchen.run(name), RUNS / name)


if __name__ == "__main__":
    main()
