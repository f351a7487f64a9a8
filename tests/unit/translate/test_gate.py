"""The gate's arithmetic, without a model."""

import math

import pytest

from dragoman.translate.export.gate import (
    Outputs,
    Sample,
    check_greedy,
    check_scores,
    check_tokenizer,
    judge,
    to_record,
)

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
REFERENCES = [" ".join(WORDS[i % 5 : i % 5 + 6]) + f" {i}" for i in range(200)]
SAMPLE = Sample("dev", [f"source {i}" for i in range(200)], REFERENCES, "de")
SCORES = [-float(i) for i in range(200)]


def spoiled(number: int) -> list[str]:
    """The last words of so many lines are wrong."""
    return [line.rsplit(" ", 3)[0] + " x y z" if i < number else line for i, line in enumerate(REFERENCES)]


def exact(greedy_spoiled: int = 0, beam_spoiled: int = 0, moved: float = 0.0) -> Outputs:
    return Outputs(spoiled(beam_spoiled), spoiled(greedy_spoiled), [score + moved for score in SCORES])


def test_equal_outputs_pass_and_say_so():
    verdict = judge(SAMPLE, exact(), exact())
    assert verdict.passed
    assert [check.name for check in verdict.checks] == ["score difference", "greedy alike", "BLEU difference"]
    assert verdict.differences == ()


@pytest.mark.parametrize(
    ("export", "failed"),
    [
        (exact(moved=0.9e-3), []),
        (exact(moved=1.1e-3), ["score difference"]),
        (exact(moved=math.nan), ["score difference"]),
        (exact(greedy_spoiled=1), []),
        (exact(greedy_spoiled=2), ["greedy alike"]),
        (exact(beam_spoiled=3), ["BLEU difference"]),
    ],
    ids=["small", "large", "nan", "one line", "two lines", "bleu"],
)
def test_exact_exports_have_three_limits(export, failed):
    verdict = judge(SAMPLE, exact(), export)
    assert [check.name for check in verdict.checks if not check.passed] == failed
    assert verdict.passed == (not failed)


def test_quantized_exports_are_judged_by_bleu_alone():
    (check,) = judge(SAMPLE, Outputs(REFERENCES), Outputs(spoiled(20))).checks
    assert not check.passed
    assert check.value < -0.2
    better = judge(SAMPLE, Outputs(spoiled(20)), Outputs(REFERENCES))
    assert not better.passed, "another model that happens to score better is another model"


def test_a_nan_among_good_scores_is_found_wherever_it_stands():
    for place in (0, 1):
        scores = [-1.0, -2.0]
        scores[place] = math.nan
        assert not check_scores([-1.0, -2.0], scores).passed


def test_the_first_differences_are_shown():
    verdict = judge(SAMPLE, exact(), exact(greedy_spoiled=5))
    assert len(verdict.differences) == 3
    assert verdict.differences[0].splitlines() == [
        "line 1   source 0", f"  original {REFERENCES[0]}", f"  export   {spoiled(1)[0]}"
    ]  # fmt: skip


def test_limits_are_inclusive_and_lists_must_match():
    assert check_greedy(["a"] * 1_000, ["b"] * 5 + ["a"] * 995).passed
    assert not check_greedy(["a"] * 1_000, ["b"] * 6 + ["a"] * 994).passed
    assert check_tokenizer([[1, 2]], [[1, 2]]).passed
    assert not check_tokenizer([[1, 2]] * 999 + [[3]], [[1, 2]] * 1_000).passed
    with pytest.raises(ValueError, match="shorter"):
        check_scores([1.0, 2.0], [1.0])


def test_what_model_json_keeps():
    record = to_record(judge(SAMPLE, Outputs(REFERENCES), Outputs(spoiled(1))))
    assert (record["dev_set"], record["num_sentences"], record["num_equal"]) == ("dev", 200, 199)
    bleu = record["scores"]["BLEU"]
    assert bleu["low"] <= bleu["delta"] <= bleu["high"]
    assert bleu["delta"] == pytest.approx(bleu["export"] - bleu["original"])
    assert "tok:13a" in bleu["signature"]
