import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from data_samples import make_request, run_prepare, sentences, write_corpus

from dragoman.config import DataConfig, VocabConfig
from dragoman.data import catalog, chunk, corpus, part, prepare, shuffle, workfolder
from dragoman.data.catalog import Named
from dragoman.data.corpus import Corpus
from dragoman.data.placeholders import SYMBOLS
from dragoman.data.shards import open_shards
from dragoman.data.vocab import Vocab
from dragoman.errors import DragomanError

ALL_PAIRS = sentences(600)
NO_MASKS = VocabConfig(size=400, placeholder_share=0.0)


def training_text(out: Path) -> list[tuple[str, str]]:
    data = open_shards(out)
    vocab = Vocab.load(data.vocab_path)
    pairs: list[tuple[str, str]] = []
    for shard in data.shards:
        sources = vocab.decode([shard.source(index).tolist() for index in range(shard.num_pairs)])
        targets = vocab.decode([shard.target(index).tolist() for index in range(shard.num_pairs)])
        pairs += zip(sources, targets, strict=True)
    return pairs


def eval_text(out: Path) -> list[tuple[str, str]]:
    data = open_shards(out)
    return [pair for entry in data.dev_sets + data.test_sets for pair in zip(*entry.lines(), strict=True)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks and parts from little text."""
    monkeypatch.setattr(corpus, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 700)
    monkeypatch.setattr(prepare, "PART_BYTES", 4_000)


def test_every_pair_is_in_one_place(tmp_path: Path):
    manifest = run_prepare(tmp_path / "out", write_corpus(tmp_path, ALL_PAIRS), vocab=NO_MASKS).manifest
    trained, held_out = training_text(tmp_path / "out"), eval_text(tmp_path / "out")
    assert len(held_out) == 60, "5 % for dev and for test"
    assert sorted(trained + held_out) == sorted(ALL_PAIRS)
    assert trained != [pair for pair in ALL_PAIRS if pair in set(trained)], "shuffled"
    assert manifest.notes[0] == (
        "held 30 pairs out of the training text as dev set, fewer than 2,000 because the corpus is small"
    )


@pytest.mark.usefixtures("small_pieces")
def test_result_does_not_depend_on_chunks_parts_or_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = write_corpus(tmp_path, ALL_PAIRS)
    many = run_prepare(tmp_path / "many", text).manifest
    parallel = run_prepare(tmp_path / "parallel", text, num_workers=2).manifest
    monkeypatch.undo()
    one = run_prepare(tmp_path / "one", text).manifest
    assert many.fingerprint == one.fingerprint == parallel.fingerprint
    assert many.corpora == one.corpora == parallel.corpora
    assert run_prepare(tmp_path / "seed", text, data=DataConfig(seed=2)).manifest.fingerprint != one.fingerprint


@pytest.mark.parametrize("pieces", ["small", "large"])
def test_duplicates_are_dropped_over_chunks_and_corpora(tmp_path: Path, request: pytest.FixtureRequest, pieces: str):
    if pieces == "small":
        request.getfixturevalue("small_pieces")
    first = write_corpus(tmp_path / "a", ALL_PAIRS[:400] + ALL_PAIRS[:50], "first")
    second = write_corpus(tmp_path / "b", ALL_PAIRS[300:], "second")
    manifest = run_prepare(tmp_path / "out", first, second, vocab=NO_MASKS).manifest
    assert sorted(training_text(tmp_path / "out") + eval_text(tmp_path / "out")) == sorted(ALL_PAIRS)
    rejected = [entry.rejected["duplicate"] for entry in manifest.corpora]
    assert [entry.num_pairs for entry in rejected] == [50, 100]
    assert rejected[0].examples[0].line == 401, "the first of two is kept"
    assert rejected[1].examples[0].line == 1
    assert len(rejected[0].examples) == 3


def test_duplicates_can_be_kept(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS + ALL_PAIRS[:50])
    run_prepare(tmp_path / "out", text, vocab=NO_MASKS, data=DataConfig(deduplicate=False))
    trained, held_out = training_text(tmp_path / "out"), eval_text(tmp_path / "out")
    expected = [pair for pair in ALL_PAIRS + ALL_PAIRS[:50] if pair not in set(held_out)]
    assert sorted(trained) == sorted(expected)


def test_weights_and_statistics(tmp_path: Path):
    base = write_corpus(tmp_path / "a", ALL_PAIRS[:400], "base")
    extra = write_corpus(tmp_path / "b", ALL_PAIRS[400:], "extra")
    dev = write_corpus(tmp_path / "dev", sentences(20, seed=9), "dev")
    weighted = Corpus("extra", extra.source, extra.target, 3.0)
    manifest = run_prepare(tmp_path / "out", base, weighted, dev=(dev,), vocab=NO_MASKS).manifest
    trained = training_text(tmp_path / "out")
    assert sorted(trained) == sorted(ALL_PAIRS[:400] + 3 * ALL_PAIRS[400:])
    stats = manifest.corpora[1]
    assert (stats.raw_lines, stats.clean_lines, stats.train_pairs) == (200, 200, 600)
    assert stats.raw_source_bytes == stats.clean_source_bytes == extra.source.stat().st_size
    assert stats.clean_target_bytes == extra.target.stat().st_size  # type: ignore[union-attr]
    vocab = Vocab.load(tmp_path / "out" / "vocab.model")
    pieces = [[vocab.pieces[piece] for piece in ids] for ids in vocab.encode([pair[0] for pair in ALL_PAIRS[400:]])]
    assert stats.bpe_source_bytes == 3 * sum(len(" ".join(row).encode()) + 1 for row in pieces)
    assert stats.source_tokens == 3 * sum(len(row) + 1 for row in pieces)
    assert manifest.test == []


def test_a_weight_below_one_leaves_pairs_out(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    dev = write_corpus(tmp_path / "dev", sentences(20, seed=9), "dev")
    half = Corpus(text.name, text.source, text.target, 0.5)
    manifest = run_prepare(tmp_path / "out", half, dev=(dev,), vocab=NO_MASKS).manifest
    assert 250 < manifest.num_train_pairs < 350
    assert manifest.corpora[0].rejected["weight"].num_pairs == 600 - manifest.num_train_pairs


@pytest.mark.parametrize("remove", [True, False])
def test_overlap_with_given_sets(tmp_path: Path, remove: bool):
    text = write_corpus(tmp_path, ALL_PAIRS)
    dev = write_corpus(tmp_path / "dev", [(ALL_PAIRS[3][0], "Anderes."), ("Other.", ALL_PAIRS[5][1])], "dev")
    data = DataConfig(remove_overlap=remove)
    manifest = run_prepare(tmp_path / "out", text, dev=(dev,), vocab=NO_MASKS, data=data).manifest
    missing = set(ALL_PAIRS) - set(training_text(tmp_path / "out"))
    assert missing == ({ALL_PAIRS[3], ALL_PAIRS[5]} if remove else set())
    assert ("in_dev_or_test" in manifest.corpora[0].rejected) == remove


def test_placeholders_reach_the_shards(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    manifest = run_prepare(tmp_path / "out", text, vocab=VocabConfig(size=400, placeholder_share=0.2)).manifest
    marked = [pair for pair in training_text(tmp_path / "out") if any(symbol in pair[0] for symbol in SYMBOLS)]
    assert len(marked) == manifest.placeholder_pairs
    assert 0.14 < len(marked) / manifest.num_train_pairs < 0.26


def test_several_dev_sets_of_one_name(tmp_path: Path):
    dev = [write_corpus(tmp_path / str(seed), sentences(10, seed=seed), "dev") for seed in (5, 6)]
    run_prepare(tmp_path / "out", write_corpus(tmp_path, ALL_PAIRS), dev=tuple(dev), test=(dev[0],))
    data = open_shards(tmp_path / "out")
    assert [entry.name for entry in data.dev_sets] == ["dev", "dev-2"]
    assert [entry.name for entry in data.test_sets] == ["dev"]


def test_the_phrasebook_brings_its_own_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def entries(pairs: list[tuple[str, str]]) -> list[SimpleNamespace]:
        return [SimpleNamespace(source=source, target=target) for source, target in pairs]

    book = SimpleNamespace(
        train=entries(ALL_PAIRS[:500]), dev=entries(ALL_PAIRS[500:550]), test=entries(ALL_PAIRS[550:])
    )
    module = SimpleNamespace(phrasebook=lambda: book)
    monkeypatch.setitem(sys.modules, "dragoman.data.phrasebook.generate", module)
    named = Named("phrasebook")
    manifest = run_prepare(tmp_path / "out", named, dev=(named,), test=(named,), vocab=NO_MASKS).manifest
    assert sorted(training_text(tmp_path / "out")) == sorted(ALL_PAIRS[:500])
    assert [(entry.name, entry.num_pairs) for entry in manifest.dev + manifest.test] == [("phrasebook", 50)] * 2


def test_unexpected_number_of_pairs_warns(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    notes = run_prepare(tmp_path / "a", text, data=DataConfig(expected_pairs=540)).manifest.notes
    assert not any("expects" in note for note in notes)
    notes = run_prepare(tmp_path / "b", text, data=DataConfig(expected_pairs=600)).manifest.notes
    assert "warning: cleaning left 540 pairs, the recipe expects 600" in notes


def test_the_vocabulary_is_learned_from_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = write_corpus(tmp_path, ALL_PAIRS)
    assert run_prepare(tmp_path / "all", text).manifest.vocab.sample_lines == 2 * 540
    some = run_prepare(tmp_path / "some", text, vocab=VocabConfig(size=360, sample_lines=301)).manifest
    assert some.vocab.sample_lines == 300
    monkeypatch.setattr(part, "MAX_SAMPLE_BYTES", 20_000)
    assert run_prepare(tmp_path / "bytes", text, vocab=VocabConfig(size=360)).manifest.vocab.sample_lines < 600


def test_an_existing_vocabulary_is_used(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    first = run_prepare(tmp_path / "a", text).manifest
    model = tmp_path / "a" / "vocab.model"
    second = run_prepare(tmp_path / "b", text, vocab_path=model).manifest
    assert second.vocab.sha256 == first.vocab.sha256
    assert second.vocab.origin == str(model)
    assert second.fingerprint == first.fingerprint


def test_pairs_of_too_many_pieces_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(part, "MAX_LENGTH", 40)
    long_pair = ("ba ko mi " * 20 + "end.", "mi ko ba " * 20 + "end.")
    manifest = run_prepare(tmp_path / "out", write_corpus(tmp_path, [*ALL_PAIRS, long_pair]), vocab=NO_MASKS).manifest
    assert manifest.corpora[0].rejected["too_many_pieces"].examples[-1].line <= 601
    assert max(manifest.source_lengths.max, manifest.target_lengths.max) <= 40
    data = open_shards(tmp_path / "out")
    assert data.shards[0].source_offsets[-1] == manifest.source_tokens


def test_finished_folder_is_left_alone(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    assert run_prepare(tmp_path / "out", text).is_new
    assert not (tmp_path / "out" / ".work").exists()
    before = (tmp_path / "out" / "manifest.json").stat().st_mtime_ns
    assert not run_prepare(tmp_path / "out", text).is_new
    assert (tmp_path / "out" / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(DragomanError, match="from other input or with other settings"):
        run_prepare(tmp_path / "out", text, vocab=VocabConfig(size=401))
    write_corpus(tmp_path, ALL_PAIRS[1:])
    with pytest.raises(DragomanError, match="from other input or with other settings"):
        run_prepare(tmp_path / "out", text)


def test_foreign_folders_are_refused(tmp_path: Path):
    text = write_corpus(tmp_path / "in", ALL_PAIRS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(DragomanError, match="is not empty and not a data folder"):
        run_prepare(tmp_path / "full", text)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    with pytest.raises(DragomanError, match="is a file, not a folder"):
        run_prepare(text.source, text)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("stage", ["clean_chunk", "learn_from_sample", "encode_part", "assemble"])
def test_interrupted_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str):
    text = write_corpus(tmp_path, ALL_PAIRS)
    expected = run_prepare(tmp_path / "whole", text).manifest
    real = getattr(prepare, stage)
    calls = []

    def fail_the_third_time(*arguments):
        calls.append(arguments)
        if len(calls) == (3 if stage in ("clean_chunk", "encode_part") else 1):
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(prepare, stage, fail_the_third_time)
    with pytest.raises(KeyboardInterrupt):
        run_prepare(tmp_path / "out", text)
    num_before = len(calls)
    with pytest.raises(DragomanError, match="unfinished work on other input"):
        run_prepare(tmp_path / "out", text, data=DataConfig(seed=5))
    again = []
    monkeypatch.setattr(prepare, stage, lambda *arguments: again.append(arguments) or real(*arguments))
    result = run_prepare(tmp_path / "out", text).manifest
    assert result.fingerprint == expected.fingerprint
    assert result.corpora == expected.corpora
    if stage in ("clean_chunk", "encode_part"):
        total = _count_tasks(tmp_path, monkeypatch, stage, real, text)
        assert len(again) == total - (num_before - 1), "finished pieces are not done twice"


def _count_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, real, text: Corpus) -> int:
    calls = []
    monkeypatch.setattr(prepare, stage, lambda *arguments: calls.append(arguments) or real(*arguments))
    run_prepare(tmp_path / "count", text)
    return len(calls)


def test_a_killed_command_goes_on(tmp_path: Path):
    """SIGKILL in the middle, with worker processes: none is left behind, and the next run finishes the work."""
    pairs = sentences(4_000)
    text = write_corpus(tmp_path, pairs)
    script = f"""
import time
from pathlib import Path
from dragoman.data import prepare
from data_samples import make_request
from dragoman.data.corpus import Corpus

if __name__ == "__main__":
    prepare.assemble = lambda *arguments: time.sleep(60)
    text = Corpus("text", Path({str(text.source)!r}), Path({str(text.target)!r}))
    request = make_request(Path({str(tmp_path / "out")!r}), text, num_workers=2)
    prepare.prepare(request, lambda stage, done, total: None)
"""
    (tmp_path / "run.py").write_text(script)
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen([sys.executable, str(tmp_path / "run.py")], env=environment)
    parts = tmp_path / "out" / ".work" / "parts"
    deadline = time.monotonic() + 60
    while not list(parts.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 2
    while any(Path(f"/proc/{pid}/cmdline").exists() and not _is_zombie(pid) for pid in workers):
        assert time.monotonic() < deadline, "worker processes outlived their parent"
        time.sleep(0.05)
    result = run_prepare(tmp_path / "out", text).manifest
    assert result.fingerprint == run_prepare(tmp_path / "whole", text).manifest.fingerprint


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in path.read_text().split()]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_full_disk_keeps_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = write_corpus(tmp_path, ALL_PAIRS)

    def no_room(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(part, "write_atomically", no_room)
        with pytest.raises(DragomanError, match="no room left on the disk") as caught:
            run_prepare(tmp_path / "out", text)
        assert "goes on where it was" in caught.value.hint
    assert list((tmp_path / "out" / ".work" / "chunks").glob("*.bin"))
    monkeypatch.setattr(prepare, "clean_chunk", None)  # would fail if cleaning were done again
    assert run_prepare(tmp_path / "out", text).is_new


def test_too_little_room_is_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = write_corpus(tmp_path, ALL_PAIRS)
    monkeypatch.setattr(workfolder.shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000))
    with pytest.raises(DragomanError, match=r"about 67.* MB needed, 1 kB free"):
        run_prepare(tmp_path / "out", text)
    assert not (tmp_path / "out").exists(), "nothing is left behind"


def test_two_at_once_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = write_corpus(tmp_path, ALL_PAIRS)
    real = prepare.clean_chunk

    def meanwhile(task: chunk.ChunkTask) -> chunk.ChunkReport:
        with pytest.raises(DragomanError, match="another prepare is at work"):
            run_prepare(tmp_path / "out", text)
        return real(task)

    monkeypatch.setattr(prepare, "clean_chunk", meanwhile)
    assert run_prepare(tmp_path / "out", text).is_new


def test_nothing_left_says_why(tmp_path: Path):
    text = write_corpus(tmp_path, [("12", "34")] * 5 + [("same", "same")])
    with pytest.raises(DragomanError, match=r"no training pair is left of 6 lines \(1 identical, 5 non_letters\)"):
        run_prepare(tmp_path / "out", text)
    assert not (tmp_path / "out").exists()


def test_a_mistake_in_the_request_costs_no_work(tmp_path: Path):
    text = write_corpus(tmp_path, ALL_PAIRS)
    cases = {
        "not a pair such as en-de": {"languages": "german"},
        "no training text": {"corpora": ()},
        "weight 0 of text is not between": {"corpora": (Corpus("text", text.source, text.target, 0.0),)},
        "there is no vocabulary": {"vocab_path": tmp_path / "none.model"},
        "did you mean 'phrasebook'": {"corpora": (Named("phrasbook"),)},
        "phrasebook is en-de, not en-fr": {"corpora": (Named("phrasebook"),), "languages": "en-fr"},
        "no evaluation set 'newstest1999'": {"dev": (Named("newstest1999"),)},
    }
    for message, changes in cases.items():
        with pytest.raises(DragomanError, match=message):
            prepare.prepare(make_request(tmp_path / "out", *changes.pop("corpora", (text,)), **changes), print)
    assert not (tmp_path / "out").exists()


def test_equal_requests_have_equal_plans(tmp_path: Path):
    from dragoman.data.request import plan_fingerprint

    here = write_corpus(tmp_path / "here", ALL_PAIRS)
    there = write_corpus(tmp_path / "there", ALL_PAIRS)
    plan = plan_fingerprint(make_request(tmp_path, here))
    assert plan == plan_fingerprint(make_request(tmp_path, there, num_workers=7)), "text counts, not where it lies"
    assert plan != plan_fingerprint(make_request(tmp_path, here, skip_invalid=True))
    assert plan != plan_fingerprint(make_request(tmp_path, here, dev=(here,)))


def test_bucket_shift_matches_the_number_of_buckets():
    assert 1 << (64 - int(shuffle._BUCKET_SHIFT)) == shuffle.NUM_BUCKETS
    assert catalog.identity("wmt14-en-de") == catalog.identity("wmt16-en-de")
