"""Data folders from elsewhere: damaged, and made to reach what is not theirs."""

import json

import pytest
from fuzz_samples import make_data

from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError


@pytest.fixture
def data(tmp_path):
    make_data(tmp_path / "data")
    return tmp_path / "data"


def rewrite(data, change):
    path = data / "manifest.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def test_damaged_data_folders_are_one_line_or_batches(tried):
    tried("data", 300)


@pytest.mark.parametrize("name", ["../shard-00000", "/etc/passwd", "a/b", "", "x\0y", "x" * 5_000])
@pytest.mark.parametrize("kind", ["shards", "dev"])
def test_no_name_in_a_manifest_leads_out_of_the_folder(data, kind, name):
    rewrite(data, lambda values: values[kind][0].update(name=name))
    for path in (data / "train").glob("shard-00000.*"):
        path.rename(data / path.name)  # so that ../shard-00000 would be found
    with pytest.raises(DragomanError, match=kind):
        open_shards(data)


@pytest.mark.parametrize("name", ["train/shard-00000.source.bin", "dev/held-out.source.txt", "vocab.model"])
def test_a_link_out_of_the_folder_is_refused(data, tmp_path, name):
    (data / name).rename(tmp_path / "elsewhere")
    (data / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DragomanError, match="leads out of it"):
        open_shards(data)


@pytest.mark.parametrize("num_pairs", [10**15, 0, -1])
def test_a_shard_that_claims_another_number_of_pairs_is_refused(data, num_pairs):
    rewrite(data, lambda values: values["shards"][0].update(num_pairs=num_pairs))
    with pytest.raises(DragomanError):
        open_shards(data)


def test_a_shard_of_nothing_is_refused(data):
    rewrite(data, lambda values: values["shards"][0].update(num_pairs=0, source_tokens=0, target_tokens=0))
    for path in (data / "train").glob("shard-00000.*"):
        path.write_bytes(b"")
    with pytest.raises(DragomanError, match="num_pairs"):
        open_shards(data)


@pytest.mark.parametrize("name", ["vocab.model", "dev/held-out.source.txt", "test/held-out.target.txt"])
def test_small_files_are_held_against_their_hashes(data, name):
    damaged = bytearray((data / name).read_bytes())
    damaged[10] ^= 1
    (data / name).write_bytes(damaged)
    with pytest.raises(DragomanError, match="other bytes than were written"):
        open_shards(data)


def test_lengths_of_other_sentences_are_refused(data):
    path = data / "train" / "shard-00000.lengths.bin"
    path.write_bytes(b"\xff\xff" * (path.stat().st_size // 2))
    with pytest.raises(DragomanError, match="other lengths than its sentences"):
        _ = open_shards(data).shards[0].lengths


def test_ids_beyond_the_vocabulary_are_refused(data):
    path = data / "train" / "shard-00000.source.bin"
    path.write_bytes(path.read_bytes()[:-2] + b"\xff\xff")
    with pytest.raises(DragomanError, match="ids that the vocabulary has not"):
        _ = open_shards(data).shards[0].source_ids


def test_a_vocabulary_of_another_size_than_the_manifest_says_is_refused(data):
    assert open_shards(data).load_vocab().size == 330
    rewrite(data, lambda values: values["vocab"].update(size=10**12))
    with pytest.raises(DragomanError, match="330 pieces, not"):
        open_shards(data).load_vocab()


def test_sentences_that_are_no_text_are_refused_whatever_the_manifest_says(data):
    entry = open_shards(data).dev_sets[0]
    entry.source_path.write_bytes(b"\xff\n" * entry.num_pairs)
    with pytest.raises(DragomanError, match="not UTF-8"):
        entry.lines()
    entry.source_path.write_bytes(b"a\n")
    with pytest.raises(DragomanError, match="1 source and"):
        entry.lines()
