"""The Hugging Face tokenizer against SentencePiece: the same ids and the same text."""

import io
import json

import pytest
import sentencepiece

from dragoman.config import VocabConfig
from dragoman.data.phrasebook.generate import phrasebook
from dragoman.data.vocab import EOS_ID, Vocab, adopt_vocab, learn_vocab
from dragoman.errors import DragomanError
from dragoman.translate.export.tokenizer import write_tokenizer

ODD = [
    "Ein schöner Gruß aus Übersee – naïve café, Žižek, Łódź, Ελλάδα, Москва.",
    "emoji 😀 👩‍👩‍👧 🇩🇪 ✊🏽 end", "中文 と 日本語 und 한국어", "1,250.50 € am 3.12.2024 um 17:05, 007 und 1234567890",
    "aaaaaaaaaaaaaaaa ------------- .......... !!!!!!", "<s> </s> <pad> <unk> <0x0A> stay text",
    "a<b>c</b> & [x] {y} %s",
    "two  spaces\tand a tab", " leading and trailing ", "no-break\u00a0space, thin\u2009space, ideographic\u3000space",
    "zero\u200bwidth, soft\u00adhyphen, combining e\u0301", "⟦url1⟧ at the start", "in the ⟦term2⟧ middle, x⟦tag1⟧y",
    "end ⟦email4⟧", "⟦nothing1⟧ and ⟦url9⟧ are no symbols", "under_score ▁ block", "x", "", "   ",
    "\x1c odd \x1f separators \x85",
    "Ünïcödé" * 20, "ABC" * 30, "'quoted' \"double\" „deutsch“ «français»", "https://example.org/a?b=c&d=1#e",
]  # fmt: skip


def lines() -> list[str]:
    sentences = phrasebook(num_train=300, num_dev=10, num_test=10).train
    text = [line for s in sentences for line in (s.source, s.target)]
    return [*text, *ODD, *(f"{a} {b}" for a, b in zip(text[:80], ODD * 4, strict=False))]


def normalized(line: str) -> str:
    """As `Vocab.encode_source` does."""
    return " ".join(line.replace("▁", "_").split())


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "vocab.model"
    path.write_bytes(learn_vocab(lines()[:400], VocabConfig(size=900)))
    return Vocab.load(path)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Vocabularies made elsewhere, as `prepare --vocab` adopts them; by kind and rule of normalisation."""

    def make(kind: str, rule: str = "identity", **options) -> Vocab:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines()[:400]), model_writer=model, model_type=kind, vocab_size=700,
            normalization_rule_name=rule, minloglevel=2, hard_vocab_limit=False, **options,
        )  # fmt: skip
        path = tmp_path_factory.mktemp("foreign") / "vocab.model"
        path.write_bytes(model.getvalue())
        path.write_bytes(adopt_vocab(path))
        return Vocab.load(path)

    return make


def loaded(vocab: Vocab, folder):
    from transformers import AutoTokenizer

    write_tokenizer(vocab, folder, 128)
    return AutoTokenizer.from_pretrained(folder)


def differing(vocab: Vocab, tokenizer, text: list[str]) -> list[str]:
    return [
        line
        for line, ids in zip(text, tokenizer(text)["input_ids"], strict=True)
        if ids != [*vocab.encode([normalized(line)])[0], EOS_ID]
    ]


def test_ids_are_those_of_sentencepiece_and_an_end(bpe, tmp_path):
    tokenizer = loaded(bpe, tmp_path)
    assert len(lines()) > 650
    assert differing(bpe, tokenizer, lines()) == []


def test_text_comes_back_as_sentencepiece_gives_it(bpe, tmp_path):
    tokenizer = loaded(bpe, tmp_path)
    text = [normalized(line) for line in lines()]
    ids = bpe.encode(text)
    assert tokenizer.batch_decode([[*each, EOS_ID] for each in ids], skip_special_tokens=True) == bpe.decode(ids)


def test_it_has_our_special_ids_and_symbols(bpe, tmp_path):
    tokenizer = loaded(bpe, tmp_path)
    assert tokenizer.is_fast
    names = ("bos_token_id", "pad_token_id", "eos_token_id", "unk_token_id")
    assert [getattr(tokenizer, name) for name in names] == [0, 1, 2, 3]
    assert len(tokenizer) == bpe.size
    assert tokenizer.convert_tokens_to_ids(["⟦url1⟧", "⟦term4⟧"]) == [4, 19]
    batch = tokenizer(["x", "a longer sentence"], padding=True)
    assert set(batch) == {"input_ids", "attention_mask"}
    assert batch["input_ids"][0][-1] == 1
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_unigram_and_foreign_vocabularies(foreign, tmp_path):
    text = [line for line in lines() if "⟦" not in line]
    cases = [("unigram", "identity"), ("unigram", "nmt_nfkc"), ("bpe", "nmt_nfkc")]
    for number, (kind, rule) in enumerate(cases):
        vocab = foreign(kind, rule, byte_fallback=True)
        tokenizer = loaded(vocab, tmp_path / str(number))
        assert differing(vocab, tokenizer, text[:600]) == [], (kind, rule)


def test_other_kinds_of_vocabularies_are_refused(foreign, tmp_path):
    with pytest.raises(DragomanError, match="of kind char") as refusal:
        write_tokenizer(foreign("char"), tmp_path, 128)
    assert "ctranslate2" in refusal.value.hint
    with pytest.raises(DragomanError, match="spaces behind words"):
        write_tokenizer(foreign("bpe", treat_whitespace_as_suffix=True), tmp_path, 128)
