import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from data_samples import run_prepare, sentences, write_corpus

from dragoman.config import DataConfig
from dragoman.data.assembly import length_stats
from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = write_corpus(tmp_path / "in", sentences(400))
    run_prepare(tmp_path / "out", corpus, data=DataConfig(shard_pairs=100))
    return tmp_path / "out"


def test_shards_are_near_equal_and_whole(folder: Path):
    data = open_shards(folder)
    sizes = [shard.num_pairs for shard in data.shards]
    assert sum(sizes) == data.manifest.num_train_pairs == 360
    assert max(sizes) <= 100
    assert max(sizes) - min(sizes) <= 1
    for shard, info in zip(data.shards, data.manifest.shards, strict=True):
        assert shard.lengths.shape == (shard.num_pairs, 2)
        assert shard.source_offsets[-1] == len(shard.source_ids) == info.source_tokens
        assert shard.target_offsets[-1] == len(shard.target_ids) == info.target_tokens
        for index in range(shard.num_pairs):
            assert len(shard.source(index)) == shard.lengths[index, 0]
            assert shard.source(index)[-1] == shard.target(index)[-1] == 2
            assert 2 not in shard.source(index)[:-1]


def test_shards_travel_to_other_processes(folder: Path):
    shard = open_shards(folder).shards[1]
    expected = shard.source(3).tolist()
    data = pickle.dumps(shard)
    assert len(data) < 2_000, "the maps stay behind"
    assert pickle.loads(data).source(3).tolist() == expected


def test_eval_sets(folder: Path):
    data = open_shards(folder)
    for entry in data.dev_sets + data.test_sets:
        sources, targets = entry.lines()
        assert entry.name == "held-out"
        assert len(sources) == len(targets) == entry.num_pairs == 20


def test_another_version_is_refused(folder: Path):
    path = folder / "manifest.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"schema": 2}))
    with pytest.raises(DragomanError, match="made by another version of dragoman"):
        open_shards(folder)


def test_not_a_data_folder(tmp_path: Path):
    with pytest.raises(DragomanError, match="is not a prepared data folder"):
        open_shards(tmp_path)


@pytest.mark.parametrize("name", ["vocab.model", "train/shard-00001.target.bin", "dev/held-out.source.txt"])
def test_missing_file_is_named(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(DragomanError, match=f"damaged: .*{name} is missing"):
        open_shards(folder)


def test_truncated_file_is_named(folder: Path):
    path = folder / "train/shard-00000.source.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DragomanError, match=r"shard-00000\.source\.bin has"):
        open_shards(folder)


def test_length_stats():
    lengths = np.array([3] * 50 + [5] * 40 + [9] * 9 + [700])
    stats = length_stats(np.bincount(lengths, minlength=1 << 16))
    assert (stats.min, stats.p10, stats.p50, stats.p90, stats.p99, stats.max) == (3, 3, 3, 5, 9, 700)
    assert stats.mean == round(float(lengths.mean()), 2)
