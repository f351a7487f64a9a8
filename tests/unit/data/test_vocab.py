import io
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from data_samples import sentences

from dragoman.config import VocabConfig
from dragoman.data import encoding, vocab
from dragoman.data.encoding import LineEncoder
from dragoman.data.placeholders import SYMBOLS
from dragoman.data.shuffle import Pairs, orders_of, text_keys
from dragoman.data.vocab import Vocab, adopt_vocab, learn_vocab
from dragoman.errors import DragomanError

LINES = [line for pair in sentences(300) for line in pair]
ODD_LINES = ["", "🍕", "日本 語 über", "x⟦tag2⟧y ⟦url1⟧, z", "1234567", "a ﬁ ½"]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Vocab:
    path = tmp_path_factory.mktemp("vocab") / "vocab.model"
    path.write_bytes(learn_vocab(LINES, VocabConfig(size=500)))
    return Vocab.load(path)


def foreign_model(path: Path, vocab_size: int = 200, **options) -> Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, vocab_size=vocab_size, minloglevel=2, **options
    )
    path.write_bytes(model.getvalue())
    return path


def test_special_ids_are_fixed(learned: Vocab):
    assert learned.pieces[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert tuple(learned.pieces[4:20]) == SYMBOLS
    assert (vocab.BOS_ID, vocab.PAD_ID, vocab.EOS_ID, vocab.UNK_ID) == (0, 1, 2, 3)
    assert learned.size == 500


def test_any_text_comes_back(learned: Vocab):
    lines = [*LINES[:20], *ODD_LINES]
    encoded = learned.encode(lines)
    assert learned.decode(encoded) == lines
    assert all(vocab.UNK_ID not in ids for ids in encoded)


def test_learning_is_deterministic():
    config = VocabConfig(size=400)
    assert learn_vocab(LINES, config) == learn_vocab(LINES, config)


def test_source_placeholders_are_restored(learned: Vocab):
    line = "tal https://a.de/x?y=1. me@b.de. <b>su</b> xorvor 日🍕. ⟦url1⟧ mi"
    ids, restorations = learned.encode_source(line)
    symbols = [learned.pieces[piece] for piece in ids if 4 <= piece < 20]
    assert symbols == ["⟦url1⟧", "⟦email1⟧", "⟦tag1⟧", "⟦tag2⟧", "⟦term2⟧", "⟦term3⟧", "⟦term1⟧"]
    assert learned.decode_target(ids, restorations) == line
    assert restorations["⟦term2⟧"] == "xorvor", "a word with an unknown letter is copied whole"
    unmasked, nothing = learned.encode_source("See https://a.de", mask=False)
    assert nothing == {}
    assert not any(4 <= piece < 20 for piece in unmasked)


def test_word_by_word_equals_whole_lines(learned: Vocab):
    lines = [line for line in LINES + ODD_LINES if line]
    ids, lengths = LineEncoder(learned).encode(lines)
    assert learned.words_are_independent
    expected = [[*row, vocab.EOS_ID] for row in learned.encode(lines)]
    assert lengths.tolist() == [len(row) for row in expected]
    assert ids.tolist() == [piece for row in expected for piece in row]


def test_a_full_word_memory_is_emptied(learned: Vocab, monkeypatch: pytest.MonkeyPatch):
    expected = LineEncoder(learned).encode(LINES)[0].tolist()
    monkeypatch.setattr(encoding, "MAX_WORDS", 50)
    monkeypatch.setattr(encoding, "BATCH_LINES", 10)
    encoder = LineEncoder(learned)
    assert encoder.encode(LINES)[0].tolist() == expected
    assert len(encoder._word_ids) < 100


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_foreign_model_is_renumbered(tmp_path: Path, model_type: str):
    original = foreign_model(tmp_path / "foreign.model", model_type=model_type)
    with pytest.raises(DragomanError, match="not 0 1 2 3"):
        Vocab.load(original)
    adopted_path = tmp_path / "adopted.model"
    adopted_path.write_bytes(adopt_vocab(original))
    adopted = Vocab.load(adopted_path)
    assert adopted.pieces[:5] == ["<s>", "<pad>", "</s>", "<unk>", "⟦url1⟧"]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(original))
    for line in LINES[:50]:
        assert [adopted.pieces[piece] for piece in adopted.encode([line])[0]] == processor.encode(line, out_type=str)
    # No byte fallback and SentencePiece's own normalisation: whole lines only.
    assert not adopted.words_are_independent
    ids, lengths = LineEncoder(adopted).encode(LINES[:5])
    assert len(ids) == lengths.sum() == sum(len(row) + 1 for row in adopted.encode(LINES[:5]))
    assert adopt_vocab(adopted_path) == adopted_path.read_bytes()


@pytest.mark.parametrize(
    ("options", "is_independent"),
    [
        ({"byte_fallback": True, "normalization_rule_name": "identity"}, True),
        ({"byte_fallback": False, "normalization_rule_name": "identity"}, False),
        ({"byte_fallback": True, "normalization_rule_name": "nmt_nfkc"}, False),
        (
            {
                "byte_fallback": True,
                "normalization_rule_name": "identity",
                "split_by_whitespace": False,
                "vocab_size": 600,
            },
            False,
        ),
        ({"byte_fallback": True, "normalization_rule_name": "identity", "treat_whitespace_as_suffix": True}, False),
        ({"byte_fallback": True, "normalization_rule_name": "identity", "add_dummy_prefix": False}, False),
    ],
)
def test_words_are_encoded_alone_only_where_that_is_exact(tmp_path: Path, options: dict, is_independent: bool):
    path = tmp_path / "adopted.model"
    path.write_bytes(
        adopt_vocab(foreign_model(tmp_path / "foreign.model", model_type="bpe", **({"vocab_size": 340} | options)))
    )
    adopted = Vocab.load(path)
    assert adopted.words_are_independent == is_independent
    lines = [*LINES[:100], *ODD_LINES[1:]]
    expected = [piece for row in adopted.encode(lines) for piece in [*row, vocab.EOS_ID]]
    assert LineEncoder(adopted).encode(lines)[0].tolist() == expected


def test_bad_models_are_named(tmp_path: Path):
    path = tmp_path / "text.model"
    path.write_text("no model")
    for function in (Vocab.load, adopt_vocab):
        with pytest.raises(DragomanError, match="is not a SentencePiece model"):
            function(path)
        with pytest.raises(DragomanError, match="there is no vocabulary"):
            function(tmp_path / "missing.model")


def test_too_large_a_vocabulary_says_what_the_text_can_carry():
    with pytest.raises(
        DragomanError, match=r"too small for a vocabulary of 9,000 pieces: it can carry at most [\d,]+"
    ) as caught:
        learn_vocab(LINES, VocabConfig(size=9_000))
    most = int(caught.value.hint.rpartition(" ")[2])
    learn_vocab(LINES, VocabConfig(size=most))


def test_too_small_a_vocabulary_says_what_is_needed():
    lines = ["".join(chr(0x4E00 + 40 * row + column) for column in range(40)) for row in range(20)]
    with pytest.raises(DragomanError, match="a vocabulary of 300 pieces is too small"):
        learn_vocab(lines, VocabConfig(size=300))


def make_pairs(texts: list[tuple[str, str]]) -> Pairs:
    sources, targets = [text[0] for text in texts], [text[1] for text in texts]
    return Pairs(text_keys(sources, targets, 1), orders_of(0, np.arange(len(texts))), sources, targets)


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_about_the_wanted_share_carries_placeholders(share: float):
    texts = [(f"line {number} of Anna", f"Zeile {number} von Anna") for number in range(10_000)]
    texts += [(f"line in words {word}", f"Zeile in Worten {word}") for word in "abcdefgh" * 1_250]
    texts[7] = ("see www.a.de", "siehe www.a.de")
    pairs = make_pairs(texts)
    rates = encoding.measure_mask_rates(pairs, share)
    is_masked = encoding.put_placeholders(pairs, rates)
    assert 0.8 * share < is_masked.mean() < 1.2 * share
    assert is_masked[7]
    assert [index for index, line in enumerate(pairs.sources) if "⟦" in line] == np.flatnonzero(is_masked).tolist()


def test_no_share_means_no_placeholders_at_all():
    pairs = make_pairs([("see www.a.de in 1999", "siehe www.a.de im Jahr 1999")])
    rates = encoding.measure_mask_rates(pairs, 0.0)
    assert not encoding.put_placeholders(pairs, rates).any()
    assert pairs.sources == ["see www.a.de in 1999"]
