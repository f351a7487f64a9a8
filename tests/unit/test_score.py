import logging
import random
import subprocess
import sys

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from dragoman.errors import DragomanError
from dragoman.score import compare, quick_bleu_chrf, score

WORDS = ["der", "Hund", "sieht", "die", "Katze", "und", "das", "Haus", "im", "Garten", "nicht", "oft"]


def sentences(count: int = 60) -> list[str]:
    draw = random.Random(1)
    return [" ".join(draw.choices(WORDS, k=draw.randint(6, 12))) for _ in range(count)]


def damaged(lines: list[str], share: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join("x" if draw.random() < share else word for word in line.split()) for line in lines]


REFERENCES = sentences()


def test_the_values_are_sacrebleus_and_inside_their_intervals():
    hypotheses = damaged(REFERENCES, 0.2, 1)
    scores = score(hypotheses, REFERENCES)
    expected = BLEU()
    assert scores.bleu.value == pytest.approx(expected.corpus_score(hypotheses, [REFERENCES]).score)
    assert scores.bleu.signature == str(expected.get_signature())
    assert "tok:13a" in scores.bleu.signature
    for metric in scores:
        assert metric.low < metric.value < metric.high
    theirs = BLEU().corpus_score(hypotheses, [REFERENCES], n_bootstrap=1000)
    assert scores.bleu.high - scores.bleu.low == pytest.approx(2 * theirs._ci, rel=0.15)


def test_a_perfect_translation():
    scores = score(REFERENCES, REFERENCES)
    assert (scores.bleu.value, scores.chrf.value, scores.ter.value) == pytest.approx((100, 100, 0))


def test_the_same_call_gives_the_same_interval():
    hypotheses = damaged(REFERENCES, 0.2, 1)
    assert score(hypotheses, REFERENCES) == score(hypotheses, REFERENCES)


def test_the_quick_scores_are_the_same_scores():
    hypotheses = damaged(REFERENCES, 0.2, 1)
    quick, slow = quick_bleu_chrf(hypotheses, REFERENCES), score(hypotheses, REFERENCES)
    assert (quick.bleu, quick.chrf) == pytest.approx((slow.bleu.value, slow.chrf.value))
    assert (quick.bleu_signature, quick.chrf_signature) == (slow.bleu.signature, slow.chrf.signature)


def test_a_language_without_spaces_is_not_cut_at_spaces():
    scores = quick_bleu_chrf(["我们今天去公园散步吧"], ["我们今天去公园跑步吧"], target_language="zh")
    assert scores.bleu > 10
    assert "tok:zh" in scores.bleu_signature


def test_a_clear_difference_is_found_with_its_sign():
    good, bad = damaged(REFERENCES, 0.1, 1), damaged(REFERENCES, 0.4, 2)
    better, worse = compare(good, bad, REFERENCES), compare(bad, good, REFERENCES)
    assert better.bleu.delta == pytest.approx(-worse.bleu.delta)
    assert better.bleu.delta > 0 > worse.bleu.delta
    assert 0 < better.bleu.low < better.bleu.delta < better.bleu.high
    assert all(contrast.is_significant for contrast in better)
    assert [contrast.a_is_worse for contrast in worse] == [True, True, True], "TER too: there lower is better"
    assert [contrast.a_is_worse for contrast in better] == [False, False, False]


def test_the_p_value_agrees_with_sacrebleus(caplog):
    caplog.set_level(logging.CRITICAL)
    a, b = damaged(REFERENCES, 0.20, 1), damaged(REFERENCES, 0.22, 2)
    test = PairedTest([("b", b), ("a", a)], {"BLEU": BLEU(references=[REFERENCES])}, references=None)
    theirs = test()[1]["BLEU"][1].p_value
    ours = compare(a, b, REFERENCES).bleu.p_value
    assert 0.05 < ours < 0.95
    assert ours == pytest.approx(theirs, abs=0.05)


def test_a_system_against_itself_differs_in_nothing():
    same = compare(REFERENCES, REFERENCES, REFERENCES)
    assert (same.bleu.delta, same.bleu.p_value, same.num_equal) == (0, 1.0, len(REFERENCES))
    assert same.differences == ()


def test_the_sentences_that_differ_most_come_first():
    a, b = list(REFERENCES), list(REFERENCES)
    a[3] = "ganz anders"
    b[7] = b[7] + " x"
    found = compare(a, b, REFERENCES, sources=[str(number) for number in range(len(REFERENCES))]).differences
    assert [(item.index, item.source) for item in found] == [(3, "3"), (7, "7")]
    assert found[0].chrf_a < found[0].chrf_b


def test_what_cannot_be_scored_is_said():
    with pytest.raises(DragomanError, match="2 sentences against 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(DragomanError, match="no sentence"):
        quick_bleu_chrf([], [])


def test_importing_it_is_cheap():
    code = "import sys, dragoman.score; print(sorted({'sacrebleu', 'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
