"""Search through fused kernels: each against float64, all together against the search of the CPU, and the graphs."""

import gc
import math
import threading
import weakref

import pytest
import torch
from fused_reference import DEVICE, INTERPRETED, needs_kernels, random_tensor, relative_error

from dragoman.data.vocab import EOS_ID
from dragoman.model import search as search_module
from dragoman.model.found import SearchOptions
from dragoman.model.fused.decoding import room as decode_room
from dragoman.model.fused.decoding.room import Room
from dragoman.model.search import search
from lively_models import SOURCES, lively_model

pytestmark = needs_kernels
on_gpu = pytest.mark.skipif(INTERPRETED or not torch.cuda.is_available(), reason="graphs and 16 bits need a GPU")
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.float16]
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3}


def attention_of(q, k, v, num_heads: int) -> torch.Tensor:
    """One query over its keys, in float64."""
    heads = [x.double().view(*x.shape[:-1], num_heads, -1) for x in (q, k, v)]
    scores = torch.einsum("he,khe->hk", heads[0], heads[1]) / math.sqrt(heads[0].shape[-1])
    return torch.einsum("hk,khe->he", scores.softmax(-1), heads[2]).flatten()


def ints(values, dtype=torch.int32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("head_width", "step"), [(16, 0), (16, 1), (16, 32), (16, 45), (64, 33)])
def test_attention_to_the_past(head_width, step, dtype):
    from dragoman.model.fused.decoding.attention import past_attention

    num_heads, num_rows, num_positions = 2, 6, 50
    width = num_heads * head_width
    qkv = random_tensor(num_rows, 3 * width, dtype=dtype)
    cache = random_tensor(num_positions * num_rows, 2 * width, dtype=dtype, seed=1)
    before = cache.clone()
    generator = torch.Generator().manual_seed(step)
    slots = torch.randint(max(step * num_rows, 1), (num_positions, num_rows), generator=generator).int().to(DEVICE)
    out = past_attention(qkv, cache, slots, ints([step], torch.int64), ints([1, 0, 1]), num_heads)
    own = slice(step * num_rows, (step + 1) * num_rows)
    q, k, v = qkv.chunk(3, dim=1)
    for row in (0, 1, 4, 5):
        past = before[slots[:step, row].long()]
        keys, values = (torch.cat([past[:, part], new[row, None]]) for part, new in _halves(width, k, v))
        assert relative_error(out[row], attention_of(q[row], keys, values, num_heads)) < TOLERANCE[dtype]
        assert cache[own][row].equal(torch.cat([k[row], v[row]]))
    assert not out[2:4].any()
    cache[own][[0, 1, 4, 5]] = before[own][[0, 1, 4, 5]]
    assert cache.equal(before)  # nothing else was written, and nothing of the sentence that is done


def _halves(width: int, k: torch.Tensor, v: torch.Tensor):
    return ((slice(0, width), k), (slice(width, 2 * width), v))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("head_width", "beam"), [(16, 1), (16, 4), (16, 17), (64, 4)])
def test_attention_to_the_source(head_width, beam, dtype):
    from dragoman.model.fused.decoding.attention import source_attention

    lengths = [1, 33, 5, 32, 70]
    num_heads = 2
    width = num_heads * head_width
    q = random_tensor(len(lengths) * beam, width, dtype=dtype)
    kv = random_tensor(160, 2 * width, dtype=dtype, seed=1)
    last = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    ranges = ints([[end - n for end, n in zip(last, lengths, strict=True)], last])
    out = source_attention(q, kv, ranges, ints([1, 1, 0, 1, 1]), num_heads)
    assert not out[2 * beam : 3 * beam].any()
    for sentence in (0, 1, 3, 4):
        tokens = slice(last[sentence] - lengths[sentence], last[sentence])
        for row in range(sentence * beam, (sentence + 1) * beam):
            expected = attention_of(q[row], kv[tokens, :width], kv[tokens, width:], num_heads)
            assert relative_error(out[row], expected) < TOLERANCE[dtype]


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize(
    ("vocab_size", "num_words"),
    [(7, 7), (300, 8), (2_048, 2), (5_000, 8), (4_500, 33), *([] if INTERPRETED else [(32_768, 8), (65_536, 64)])],
)
def test_best_words(vocab_size, num_words, step):
    from dragoman.model.fused.decoding.best_words import best_words

    logits = random_tensor(6, vocab_size, seed=vocab_size) * 4
    logits[0, EOS_ID] = 60.0  # far ahead, where it may be
    logits[1, -1] = 50.0
    logits[3] -= 1e4  # nothing but differences counts
    top, words = best_words(logits, num_words, ints([1, 0, 1]), ints([step], torch.int64), ints([EOS_ID], torch.int64))
    exact = logits.double()
    if step == 0:
        exact[:, EOS_ID] = -torch.inf
    exact = exact.log_softmax(-1)
    rows = [0, 1, 4, 5]
    expected = exact.topk(num_words, dim=-1)
    assert torch.allclose(top[rows].double(), expected.values[rows], atol=2e-5, rtol=1e-6)
    finite = torch.isfinite(expected.values[rows])
    assert words[rows][finite].long().equal(expected.indices[rows][finite])
    assert (words[0, 0] == EOS_ID) == (step > 0)
    assert (top[2:4] == -torch.inf).all() and not words[2:4].any()
    assert words.min() >= 0 and words.max() < vocab_size


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, where kernels are interpreted
def test_a_row_that_overflowed_has_no_chance_and_breaks_nothing():
    from dragoman.model.fused.decoding.best_words import best_words

    logits = random_tensor(4, 300)
    logits[0, 5] = torch.nan
    logits[1] = torch.nan
    logits[2, 7] = torch.inf
    top, words = best_words(logits, 8, ints([1]), ints([1], torch.int64), ints([EOS_ID], torch.int64))
    assert (top[:3] == -torch.inf).all()
    assert torch.isfinite(top[3]).all()
    assert words.min() >= 0 and words.max() < 300


@pytest.fixture
def small_graphs(monkeypatch):
    """Room for two sentences where two come: the interpreter pays for every one."""
    monkeypatch.setattr(decode_room, "LEAST_SENTENCES", 2)


def decoder_of(model, dtype=torch.float32, room=None):
    from dragoman.model.fused.decoding.decoder import Decoder

    return Decoder(model, dtype, room)


def assert_same(found, expected, tolerance=1e-5):
    assert [[each.ids for each in best] for best in found] == [[each.ids for each in best] for best in expected]
    for best, other in zip(found, expected, strict=True):
        assert [each.score for each in best] == pytest.approx([each.score for each in other], rel=tolerance)


CASES = {
    "greedy": ({}, SOURCES, SearchOptions(1, 1.0, 9)),
    "beam-2": ({"activation": "gelu"}, SOURCES, SearchOptions(2, 0.6, 9, 2)),
    "beam-4": ({}, SOURCES, SearchOptions(4, 1.0, 9, 4)),
    "no-penalty": ({"attention_bias": False}, SOURCES, SearchOptions(4, 0.0, 9, 2)),
    "post-norm": ({"norm": "post", "activation": "swish"}, SOURCES, SearchOptions(3, 1.0, 9)),
    "one-sentence": ({}, SOURCES[2:3], SearchOptions(4, 1.0, 9)),
    "sentence-of-one": ({}, SOURCES[3:4], SearchOptions(2, 1.0, 9)),
    "long": ({}, SOURCES[:1], SearchOptions(1, 1.0, 36)),  # more than a block of the past
    "few-words": ({"vocab_size": 7}, [[4, 3, EOS_ID], [3, EOS_ID]], SearchOptions(4, 1.0, 5, 4)),
    "one-step": ({}, SOURCES, SearchOptions(4, 1.0, 1, 3)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_search_finds_what_the_search_of_the_cpu_finds(case, small_graphs):
    settings, sources, options = CASES[case]
    model, other = lively_model(**settings).to(DEVICE), lively_model(**settings)
    assert_same(decoder_of(model).search(model, sources, EOS_ID, options), search(other, sources, EOS_ID, options))


def test_more_sentences_than_fit_and_other_options_in_between(small_graphs):
    """Memory grows, graphs are made anew, and what one search leaves behind does not reach the next."""
    model, other = lively_model().to(DEVICE), lively_model()
    decoder = decoder_of(model, room=Room(rows=4, slots=40, tokens=9))
    for sources, options in (
        (SOURCES[3:], SearchOptions(2, 1.0, 4)),
        (SOURCES, SearchOptions(2, 1.0, 7)),
        (SOURCES[:2], SearchOptions(1, 0.0, 3)),
        (SOURCES[:2], SearchOptions(2, 1.0, 7)),
    ):
        assert_same(decoder.search(model, sources, EOS_ID, options), search(other, sources, EOS_ID, options))
    assert decoder.search(model, [], EOS_ID, SearchOptions()) == []


def test_weights_that_changed_are_seen(small_graphs):
    model, other = lively_model().to(DEVICE), lively_model()
    options = SearchOptions(2, 1.0, 5)
    decoder = decoder_of(model)
    first = decoder.search(model, SOURCES[:2], EOS_ID, options)
    for each in (model, other):
        with torch.no_grad():
            each.embedding.weight.data[3:] = each.embedding.weight.data[3:].flip(0)  # as a kernel would: no trace of it
    second = decoder.search(model, SOURCES[:2], EOS_ID, options)
    assert [best[0].ids for best in first] != [best[0].ids for best in second]
    assert_same(second, search(other, SOURCES[:2], EOS_ID, options))


@on_gpu
def test_a_graph_finds_what_single_steps_find(monkeypatch):
    from dragoman.model.fused.decoding.graph import Recorder

    model = lively_model(vocab_size=3_000, d_model=128, num_heads=2, d_ffn=256).to(DEVICE)
    random = torch.Generator().manual_seed(1)
    sources = [[*torch.randint(4, 3_000, (n,), generator=random).tolist(), EOS_ID] for n in range(1, 60)]
    options = SearchOptions(4, 1.0, 60, 2)
    decoder = decoder_of(model)
    replayed = [decoder.search(model, sources, EOS_ID, options) for _ in range(2)]
    recorded = []
    monkeypatch.setattr(Recorder, "record", lambda self, work: recorded.append(1) or work)
    single = decoder_of(model).search(model, sources, EOS_ID, options)
    assert recorded
    assert_same(replayed[0], single)
    assert_same(replayed[1], single)


@on_gpu
def test_16_bits_find_nearly_the_same_and_the_public_search_takes_them():
    settings = {"vocab_size": 3_000, "d_model": 128, "num_heads": 2, "d_ffn": 256}
    model, other = lively_model(**settings).to(DEVICE), lively_model(**settings)
    random = torch.Generator().manual_seed(2)
    sources = [[*torch.randint(4, 3_000, (n % 40,), generator=random).tolist(), EOS_ID] for n in range(600)]
    options = SearchOptions(4, 1.0, 24)
    assert search_module.is_fused(model, options)
    with torch.autocast("cuda", torch.bfloat16):
        found = search(model, sources, EOS_ID, options)
    assert search_module._decoders[model].device == model.embedding.weight.device
    expected = search(other, sources, EOS_ID, options)
    same = [mine[0].ids == theirs[0].ids for mine, theirs in zip(found, expected, strict=True)]
    # Rounding the weights alone to fp16 leaves 94 % and 0.003 of these random ones, to bf16 65 % and 0.028.
    assert sum(same) > 0.8 * len(same)
    apart = [abs(mine[0].score - theirs[0].score) for mine, theirs in zip(found, expected, strict=True)]
    assert sum(apart) / len(apart) < 0.015
    kept = weakref.ref(search_module._decoders[model])
    del model
    gc.collect()
    assert kept() is None  # with the model goes what was made for it


@on_gpu
def test_a_graph_can_be_made_while_torch_is_deterministic(monkeypatch):
    """As in a run with train.deterministic: some of torch's operations then ask the host, or warn (an error here)."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    model = lively_model().to(DEVICE)
    options = SearchOptions(4, 1.0, 20, 2)
    expected = decoder_of(model).search(model, SOURCES, EOS_ID, options)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        found, rounded = (
            decoder_of(model, dtype).search(model, SOURCES, EOS_ID, options) for dtype in (torch.float32, torch.float16)
        )
    finally:
        torch.use_deterministic_algorithms(False)
    assert_same(found, expected)
    assert all(rounded)


@on_gpu
def test_threads_take_turns():
    model = lively_model().to(DEVICE)
    options = SearchOptions(4, 1.0, 20)
    expected = [search(model, [source], EOS_ID, options) for source in SOURCES]
    found: dict[int, list] = {}

    def work(number: int) -> None:
        found[number] = [search(model, [source], EOS_ID, options) for source in SOURCES]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(4)] == [expected] * 4


@on_gpu
def test_a_number_too_large_for_16_bits_is_left_to_torch():
    model, other = lively_model().to(DEVICE), lively_model()
    for each in (model, other):
        with torch.no_grad():
            part = each.decoder[0].feed_forward.sublayer
            part.up.bias.add_(1e6)
            part.down.weight.mul_(1e-6)
    options = SearchOptions(2, 1.0, 6)
    assert not any(search_module._decoder_of(model).search(model, SOURCES, EOS_ID, options))
    assert_same(search(model, SOURCES, EOS_ID, options), search(other, SOURCES, EOS_ID, options), tolerance=1e-3)
