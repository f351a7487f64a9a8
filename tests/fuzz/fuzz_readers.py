"""Every reader that takes files from elsewhere: a valid folder for it, and a call as deep as a user's command goes."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_samples

from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import OPTIMIZER, RECIPE, STATE, VOCAB, WEIGHTS, rank_file


@dataclass(frozen=True)
class Reader:
    """`make` writes a valid folder, `read` reads one; `files` are those that get damaged."""

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], object]
    files: Callable[[Path], Sequence[str]]
    is_native: bool = False  # whether code that could take the process with it sees the bytes
    share: float = 1.0  # of the inputs that are asked for, where each takes long


def _all_files(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not _is_linked(path)
    )


def _is_linked(path: Path) -> bool:
    return any(part.is_symlink() for part in (path, *path.parents))


def _these(*names: str) -> Callable[[Path], Sequence[str]]:
    return lambda folder: names


def _make_recipe(folder: Path) -> None:
    from dragoman.recipe import shipped_recipes

    folder.mkdir()
    recipes = Path(__file__).parents[2] / "src" / "dragoman" / "recipes"
    for name in shipped_recipes():
        shutil.copyfile(recipes / f"{name}.toml", folder / f"{name}.toml")


def _read_recipes(folder: Path) -> None:
    from dragoman.recipe import load_recipe

    _all_of([lambda path=path: load_recipe(str(path)) for path in sorted(folder.iterdir())])


def _make_changes(folder: Path) -> None:
    folder.mkdir()
    (folder / "changes.toml").write_text("model.d_model=64\noptim.betas=[0.9, 0.98]\nsync.method=dense\nname=x\n")


def _read_changes(folder: Path) -> None:
    """As `--set` hands them over: no NUL and no line of several thousand signs comes through an operating system."""
    from dragoman.recipe import load_recipe

    path = folder / "changes.toml"
    text = path.read_bytes().decode(errors="replace").replace("\0", "") if path.is_file() else ""
    lines = [line for line in text.split("\n") if line]
    _all_of([lambda: load_recipe("tiny", lines), *(lambda line=line: load_recipe("tiny", [line]) for line in lines)])


def _read_text(folder: Path) -> None:
    from dragoman.data.corpus import Corpus, check_inputs

    corpora = [
        Corpus("plain", folder / "plain.en", folder / "plain.de"),
        Corpus("packed", folder / "packed.en.gz", folder / "packed.de.xz"),
        Corpus("mixed", folder / "plain.en", folder / "packed.fr.zst"),
        Corpus("both", folder / "both.tsv", None),
    ]

    def clean(corpus: Corpus, skip_invalid: bool) -> None:
        check_inputs([corpus])
        _clean(corpus, skip_invalid)

    _all_of([lambda c=corpus, skip=skip: clean(c, skip) for corpus in corpora for skip in (False, True)])


def _clean(corpus: Any, skip_invalid: bool) -> None:
    from dragoman.config import DataConfig
    from dragoman.data.chunk import ChunkTask, clean_chunk
    from dragoman.data.corpus import read_chunks

    with tempfile.TemporaryDirectory() as work:
        for raw in read_chunks(corpus, skip_invalid):
            clean_chunk(ChunkTask(raw, corpus, 0, ("en", "de"), DataConfig(), skip_invalid, Path(work)))


def _prepare(folder: Path) -> None:
    """All of `prepare`: what it refuses leaves nothing under a final name."""
    from dragoman.config import DataConfig, VocabConfig
    from dragoman.data.corpus import Corpus
    from dragoman.data.prepare import prepare
    from dragoman.data.request import Request
    from dragoman.data.shards import open_shards

    with tempfile.TemporaryDirectory() as parent:
        out = Path(parent) / "data"
        corpora = (Corpus("plain", folder / "plain.en", folder / "plain.de"), Corpus("both", folder / "both.tsv", None))
        dev = (Corpus("dev", folder / "packed.en.gz", folder / "packed.de.xz"),)
        data, vocab = DataConfig(filters=[], remove_overlap=False), VocabConfig(size=330)
        request = Request(out, "en-de", corpora, dev, (), data, vocab, num_workers=1)
        try:
            prepare(request, lambda stage, done, total: None)
            open_shards(out)
        except DragomanError:
            assert not out.exists(), f"left behind: {sorted(path.name for path in out.iterdir())}"
            raise


def _read_data(folder: Path) -> None:
    from dragoman.config import CutBatch
    from dragoman.data.batches import BatchPlan
    from dragoman.data.shards import open_shards

    data = open_shards(folder)
    assert data.manifest.source_language, data.manifest.target_language
    plan = BatchPlan(data.shards, CutBatch(target_tokens=800, num_microbatches=2, max_pieces=200), seed=1)
    for step in range(1, min(plan.steps_per_epoch, 12) + 1):
        step_plan = plan.step(step)
        for microbatch in range(2):
            batch = plan.batch(step_plan, microbatch)
            assert batch is None or max(batch.source_ids.max(), batch.target_ids.max()) < data.manifest.vocab.size
            assert batch is None or len(batch.input_ids) == batch.num_target_tokens
    for entry in (*data.dev_sets, *data.test_sets):
        sources, targets = entry.lines()
        assert len(sources) == len(targets) == entry.num_pairs
    data.load_vocab()


def _read_run(folder: Path) -> None:
    from dragoman.run.completeness import find_gaps, find_left_out
    from dragoman.run.control import read_control, refuse_running
    from dragoman.run.folder import RunFolder
    from dragoman.run.reader import read_run
    from dragoman.web.watch.vitals import read_vitals

    run = RunFolder(folder)
    control = read_control(run)
    assert control is None or all(isinstance(member["name"], str) for member in control.members)
    refuse_running(run)
    assert read_vitals(run).is_there
    find_gaps(folder)
    find_left_out(folder)
    record = read_run(folder)
    record.read_eval_sentences(20, "dev")


def _read_report(folder: Path) -> None:
    """What a report says of a damaged run, without its drawings."""
    from dragoman.report.diagnosis import diagnose
    from dragoman.run.reader import read_run

    diagnose(read_run(folder))


def _read_charts(folder: Path) -> None:
    """All that a report in JSON holds, which is all that the others show."""
    import json

    from dragoman.report.diagnosis import diagnose
    from dragoman.report.values import values_of
    from dragoman.run.reader import read_run

    json.dumps(values_of(diagnose(read_run(folder))), ensure_ascii=False, allow_nan=False).encode()


def _read_state(folder: Path) -> None:
    """What a resumed run asks of a checkpoint without torch."""
    from dragoman.run.checkpoint_files import find_damage

    problem = find_damage(folder)
    if problem is not None:
        raise DragomanError(problem)
    from dragoman.train.checkpoint_restore import read_progress

    read_progress(folder)


def _read_weights(folder: Path) -> None:
    from dragoman.model.weights import average_files, load_tensors

    average_files([folder / WEIGHTS, folder / WEIGHTS])
    for name in (WEIGHTS, OPTIMIZER, rank_file(0)):
        load_tensors(folder / name)


def _read_model(folder: Path) -> None:
    """Load a checkpoint from a stranger, and translate with it."""
    from dragoman.translate.translator import Translator

    Translator(folder, device="cpu").translate(["ba ko mi", "", "ß 漢字 http://a.b/c"], max_length=6)


def _make_vocab(folder: Path) -> None:
    fuzz_samples.make_checkpoint(folder)
    for path in folder.iterdir():
        if path.name != VOCAB:
            path.unlink()


def _read_vocab(folder: Path) -> None:
    from dragoman.data.vocab import Vocab, adopt_vocab

    lines = ["ba ko mi", "", "ß 漢字 http://a.b/c \U0001f600", "x" * 500]

    def use() -> None:
        vocab = Vocab.load(folder / VOCAB)
        vocab.decode(vocab.encode(lines))
        for line in lines:
            ids, restorations = vocab.encode_source(line)
            vocab.decode_target(ids, restorations)
        assert len(vocab.piece_bytes) == vocab.size
        assert vocab.words_are_independent in (True, False)

    _all_of([use, lambda: adopt_vocab(folder / VOCAB)])


def _make_input(folder: Path) -> None:
    fuzz_samples.make_text(folder)
    for path in folder.iterdir():
        if path.name != "plain.en":
            path.unlink()


def _translate(folder: Path) -> None:
    """The lines of a file, each into one line."""
    from dragoman.commands.translate import _chunks, _decoded, _open

    path = folder / "plain.en"
    with _open(path) as stream:
        for lines in _chunks(_decoded(stream, path), 512):
            results = _translator().translate(lines[:20], beam=1, max_length=3)
            assert not any("\n" in best[0].text or "\r" in best[0].text for best in results)
            "".join(best[0].text for best in results).encode()


_loaded: list[Any] = []


def _translator() -> Any:
    from dragoman.translate.translator import Translator

    if not _loaded:
        with tempfile.TemporaryDirectory() as parent:
            fuzz_samples.make_checkpoint(Path(parent) / "model")
            _loaded.append(Translator(Path(parent) / "model", device="cpu"))
    return _loaded[0]


def _all_of(calls: Sequence[Callable[[], object]]) -> None:
    """Call all of them, for a refusal of one must not hide what another does; then refuse as the first did."""
    refusals: list[DragomanError] = []
    for call in calls:
        try:
            call()
        except DragomanError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


_MODEL_FILES = (WEIGHTS, RECIPE, VOCAB)
_STATE_FILES = (STATE, STATE, STATE, WEIGHTS, VOCAB)
READERS = {
    reader.name: reader
    for reader in (
        Reader("recipe", _make_recipe, _read_recipes, _all_files),
        Reader("change", _make_changes, _read_changes, _all_files),
        Reader("text", fuzz_samples.make_text, _read_text, _all_files),
        Reader("prepare", fuzz_samples.make_text, _prepare, _these("plain.en", "plain.de", "both.tsv", "packed.de.xz")),
        Reader("data", fuzz_samples.make_data, _read_data, _all_files),
        Reader("run", fuzz_samples.make_run, _read_run, _all_files),
        Reader("report", fuzz_samples.make_run, _read_report, _all_files, share=0.2),
        Reader("charts", fuzz_samples.make_run, _read_charts, _all_files, share=0.02),
        Reader("state", fuzz_samples.make_checkpoint, _read_state, _these(*_STATE_FILES)),
        Reader("weights", fuzz_samples.make_checkpoint, _read_weights, _these(WEIGHTS, OPTIMIZER), is_native=True),
        Reader("model", fuzz_samples.make_checkpoint, _read_model, _these(*_MODEL_FILES), is_native=True),
        Reader("vocab", _make_vocab, _read_vocab, _these(VOCAB), is_native=True),
        Reader("translate", _make_input, _translate, _all_files),
    )
}
