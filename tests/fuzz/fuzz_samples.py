"""Small valid folders to damage: text, a data folder, a run with all of its records, a checkpoint that translates."""

import atexit
import gzip
import json
import lzma
import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import tomli_w
import zstandard

from command_line import TINY_RUN
from dragoman.config import DataConfig, VocabConfig
from dragoman.data.corpus import Corpus
from dragoman.data.prepare import prepare
from dragoman.data.request import Request
from dragoman.hashing import file_sha256
from dragoman.recipe import load_recipe
from dragoman.run.checkpoint_files import OPTIMIZER, RECIPE, STATE, VOCAB, WEIGHTS, rank_file, state_digest
from dragoman.run.folder import RunFolder
from sample_run import write_control_of_two

GOLDEN = Path(__file__).parents[1] / "golden" / "runs" / "healthy-two"
NUM_LINES = 12  # of a run's records: enough to lose some
SYLLABLES = ["ba", "ko", "mi", "ren", "tal", "su", "vor", "ne", "gau", "lin", "dro", "pe", "ß", "é"]


def make_text(folder: Path, num_pairs: int = 60) -> None:
    """One corpus in every form that `prepare` reads."""
    folder.mkdir()
    draw = random.Random(1)
    lines = [" ".join(draw.choice(SYLLABLES) for _ in range(draw.randint(3, 12))) for _ in range(2 * num_pairs)]
    source, target = ("".join(f"{line}\n" for line in lines[side::2]).encode() for side in (0, 1))
    (folder / "plain.en").write_bytes(source)
    (folder / "plain.de").write_bytes(target)
    (folder / "packed.en.gz").write_bytes(gzip.compress(source, mtime=0))
    (folder / "packed.de.xz").write_bytes(lzma.compress(target))
    (folder / "packed.fr.zst").write_bytes(zstandard.compress(target))
    rows = zip(source.splitlines(), target.splitlines(), strict=True)
    (folder / "both.tsv").write_bytes(b"".join(b"%s\t%s\n" % row for row in rows))


def make_data(folder: Path) -> None:
    """A finished data folder of three shards and two sets of sentences."""
    shutil.copytree(_prepared(), folder)


@cache
def _prepared() -> Path:
    folder = Path(mkdtemp(prefix="dragoman-fuzz-"))
    atexit.register(shutil.rmtree, folder)
    make_text(folder / "text", num_pairs=300)
    corpus = Corpus("plain", folder / "text" / "plain.en", folder / "text" / "plain.de")
    request = Request(
        out=folder / "data",
        languages="en-de",
        corpora=(corpus,),
        dev=(),
        test=(),
        data=DataConfig(shard_pairs=100, filters=[]),
        vocab=VocabConfig(size=330),
        num_workers=1,
    )
    prepare(request, lambda stage, done, total: None)
    return folder / "data"


def make_run(folder: Path) -> None:
    """The records of a real run of two hosts, cut short, with a controller's word and two checkpoints."""
    shutil.copytree(GOLDEN, folder, ignore=lambda _, names: {name for name in names if name == "evals"})
    for path in folder.glob("*.jsonl"):
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:NUM_LINES]))
    sentences = RunFolder(GOLDEN).eval_folder(20) / "dev.jsonl"
    (folder / "evals" / "step-00000020").mkdir(parents=True)
    (folder / "evals" / "step-00000020" / "dev.jsonl").write_bytes(sentences.read_bytes())
    run = RunFolder(folder)
    write_control_of_two(run)
    for step in (5, 10):
        seal_checkpoint(run.step_checkpoint(step), {WEIGHTS: b"no weights"}, step)
    run.set_pointer("last", 10)


def make_checkpoint(folder: Path) -> None:
    """A checkpoint as `train` writes one, of a model of random weights."""
    import torch

    from dragoman.config import ModelConfig
    from dragoman.model.transformer import Transformer, initialize
    from dragoman.model.weights import save_tensors

    folder.mkdir()
    recipe = load_recipe("tiny", TINY_RUN)
    config: ModelConfig = recipe.model
    model = Transformer(config, 330)
    initialize(model, seed=1)
    save_tensors(dict(model.state_dict()), folder / WEIGHTS)
    averages = {f"{name}.exp_avg": torch.zeros_like(tensor) for name, tensor in model.named_parameters()}
    save_tensors(averages, folder / OPTIMIZER)
    save_tensors({"error": torch.zeros(3)}, folder / rank_file(0))
    shutil.copyfile(_prepared() / "vocab.model", folder / VOCAB)
    (folder / RECIPE).write_text(tomli_w.dumps(recipe.model_dump(exclude_none=True)), encoding="utf-8")
    seal_checkpoint(folder, {}, 10)


def seal_checkpoint(folder: Path, files: dict[str, bytes], step: int) -> None:
    """Write the files, and the state that proves them and those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    proofs = {
        path.name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted(folder.iterdir())
        if path.name != STATE
    }
    state = {"step": step, "target_tokens": 900, "trained_seconds": 1.5, "best_loss": 2.0, "files": proofs}
    (folder / STATE).write_text(json.dumps({**state, "sha256": state_digest(state)}), encoding="utf-8")
