"""The mistakes that people make when they read a run, one test each: the answers must not make them."""

from dataclasses import replace

import numpy as np
import pytest

import diagnose_samples as samples
from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.finding import Answer
from dragoman.diagnose.questions import answer_questions
from dragoman.diagnose.rules import find
from dragoman.run.reader import RunRecord
from dragoman.run.samples import CardSample


def answers_of(run: RunRecord) -> dict[int, Answer]:
    return {answer.number: answer for answer in answer_questions(gather_facts(run))}


def gpus_waiting() -> samples.MemoryRun:
    return samples.build(replace(samples.NETWORK_BOUND, has_gpus=True))


def test_a_gpu_that_waits_in_an_exchange_is_not_used_whatever_its_utilisation():
    answer = answers_of(gpus_waiting())[4]
    assert answer.verdict == "Busy, not used."
    assert "read 100 %: it counts a GPU that waits inside an exchange as busy" in answer.sentences
    assert "full memory is no use" in answer.sentences


def test_model_flops_stand_beside_the_share_of_computing():
    labels = [number.label for number in answers_of(gpus_waiting())[4].numbers]
    assert labels == ["Busy (utilisation)", "Share of the step spent computing", "Model FLOPs over peak"]


def test_a_peak_below_what_was_done_is_not_believed():
    run = samples.build(samples.HEALTHY_ONE)
    assert run.profile is not None and run.profile.compute is not None
    low = replace(run.profile, compute=replace(run.profile.compute, peak_flops=1e9))
    answer = answers_of(replace(run, profile=low))[4]
    assert "of the peak" not in answer.sentences
    assert "dragoman doctor" in answer.missing


def test_rates_are_given_in_bytes_and_bits():
    text = answers_of(samples.build(samples.NETWORK_BOUND))[5].sentences
    assert "2.5 MB/s (20 Mb/s)" in text


def test_sizes_are_given_in_mb_and_mib():
    answers = answers_of(samples.build(samples.HEALTHY_ONE))
    assert answers[9].verdict == "14.2 MB (13.6 MiB)."
    assert "4.58 MB (4.37 MiB)" in answers[7].verdict


def test_a_step_time_is_given_both_ways():
    answer = answers_of(samples.build(samples.HEALTHY_ONE))[10]
    mean = float(answer.verdict.split(" s ")[0])
    rate = float(answer.verdict.partition("(")[2].split(" steps/s")[0])
    assert rate == pytest.approx(1 / mean, rel=0.01)


def test_duration_steps_and_step_time_agree():
    answers = answers_of(samples.build(samples.HEALTHY_ONE))
    assert "account for 100 % of the duration" in answers[1].sentences
    run = samples.build(samples.HEALTHY_ONE)
    late = tuple(replace(step, time=step.time + (600 if step.step > 200 else 0)) for step in run.steps)
    gap = answers_of(replace(run, steps=late, events=run.events[:2]))[1]
    assert "10 min" in gap.sentences and "in no record" in gap.sentences
    assert gap.confidence == "medium"


def with_card(run: samples.MemoryRun, name: str, sent: int, claimed: int | None = None) -> samples.MemoryRun:
    """The same run with another reading of one card in every tenth sample."""
    lines = []
    for number, sample in enumerate(run.samples):
        if number % 10 == 0:
            card = CardSample(name, sent, sent, 1, 1, 0, claimed or 1_000_000_000)
            sample = replace(sample, cards=(*(c for c in sample.cards if c.name != name), card))
        lines.append(sample)
    return replace(run, samples=tuple(lines))


def test_the_card_of_the_exchange_is_looked_at_and_no_other():
    run = with_card(samples.build(samples.NETWORK_BOUND), "docker0", 90_000_000)
    facts = gather_facts(run)
    assert facts.link is not None
    assert facts.link.cards == {"a": "eth0", "b": "eth0"}
    assert facts.link.mean_sent_rate == pytest.approx(2.2e6, rel=0.1)


def test_a_wrong_card_is_noticed():
    run = samples.build(samples.NETWORK_BOUND)
    quiet = tuple(replace(line, card_sent_bytes=900 if line.card_sent_bytes else None) for line in run.timings)
    facts = gather_facts(replace(run, timings=quiet))
    assert facts.link is not None and not facts.link.is_card_right
    assert facts.link.step_bytes == samples.NETWORK_BOUND.sent_bytes
    assert "not the one" in answers_of(replace(run, timings=quiet))[5].evidence


def test_an_impossible_counter_reading_is_left_out_and_counted():
    run = with_card(samples.build(samples.NETWORK_BOUND), "eth0", 10**12)
    facts = gather_facts(run)
    assert facts.link is not None and facts.link.num_impossible > 10
    assert np.nanmax(facts.hosts[0].sent_rate) < 1e9 / 8
    assert facts.link.mean_sent_rate == pytest.approx(2.2e6, rel=0.1)
    assert "counter readings" in answers_of(run)[5].evidence


def test_the_size_of_a_checkpoint_is_not_what_travels():
    text = answers_of(samples.build(samples.HEALTHY_TWO))[9].sentences
    assert "None of this travels" in text and "4.82 MB out of each host" in text


def test_one_higher_point_is_not_overfitting():
    def bump(step: int) -> float:
        return 1.5 + 1.0 / step + (0.3 if step == 300 else 0.0)

    run = samples.build(replace(samples.HEALTHY_ONE, dev_loss=bump, train_loss=lambda step: 1.4 - 0.001 * step))
    answer = answers_of(run)[3]
    assert answer.verdict == "Too early to say."
    assert "One higher point is not overfitting" in answer.sentences
    assert "overfitting" not in {finding.code for finding in find(gather_facts(run))}


def test_a_rise_within_the_noise_is_not_overfitting():
    def wobble(step: int) -> float:
        return 1.5 + (0.004 if step % 60 else 0.0) - (0.002 if step == 150 else 0)

    run = samples.build(replace(samples.HEALTHY_ONE, dev_loss=wobble, train_loss=lambda step: 1.4 - 0.001 * step))
    assert answers_of(run)[3].verdict == "No sign of it."


def test_a_dev_loss_that_rises_while_training_pairs_are_not_learned_is_something_else():
    run = samples.build(replace(samples.OVERFITTING, train_loss=samples.OVERFITTING.dev_loss))
    assert answers_of(run)[3].verdict == "No, but the dev loss rises."
    assert "overfitting" not in {finding.code for finding in find(gather_facts(run))}


def test_training_loss_with_dropout_and_smoothing_is_not_compared_with_dev_loss():
    run = samples.build(samples.HEALTHY_ONE)
    shifted = tuple(replace(step, loss=step.loss + 3, nll=step.nll + 3) for step in run.steps)
    assert answers_of(replace(run, steps=shifted))[3].sentences == answers_of(run)[3].sentences
    assert "measured alike, without dropout" in answers_of(run)[3].sentences


def test_a_rate_that_still_falls_is_no_verdict_on_training():
    shape = replace(samples.PLATEAU, optim={"warmup_steps": 50, "learning_rate": 2.0, "schedule": "transformer"})
    answer = answers_of(samples.build(shape))[2]
    assert answer.verdict == "Yes."
    assert "41 % of its peak; that alone is no verdict" in answer.sentences


def test_flat_loss_while_bleu_rises_is_not_called_trained():
    shape = replace(samples.PLATEAU, known_words=lambda step: 0.4 + step / 600)
    run = samples.build(shape)
    assert answers_of(run)[2].verdict == "No."
    assert "plateau" not in {finding.code for finding in find(gather_facts(run))}


def test_rising_loss_while_bleu_rises_is_told_as_both():
    shape = replace(samples.OVERFITTING, known_words=lambda step: 0.3 + step / 600)
    assert (
        answers_of(samples.build(shape))[2].verdict == "By dev loss it is past its best at step 120, by BLEU not yet."
    )


def test_the_schedule_is_a_formula_and_is_checked():
    run = samples.build(replace(samples.HEALTHY_ONE, optim={"warmup_steps": 80, "learning_rate": 2.0}))
    answer = answers_of(run)[6]
    assert answer.verdict == "Warm-up, then inverse square root."
    assert "rate = 2 x 128^-0.5 x min(step^-0.5, step x 80^-1.5)" in answer.sentences
    assert "at step 80" in answer.sentences and "not on loss, BLEU or data" in answer.sentences
    bent = tuple(
        replace(step, learning_rate=step.learning_rate * (0.5 if step.step > 200 else 1)) for step in run.steps
    )
    wrong = answers_of(replace(run, steps=bent))[6]
    assert wrong.verdict == "Not quite what the recipe says."
    assert "50 %, first at step 201" in wrong.sentences


def test_a_slow_host_is_not_taken_for_a_slow_link():
    facts = gather_facts(samples.build(samples.STRAGGLER))
    assert facts.split is not None
    assert facts.split.transfer_seconds == pytest.approx(0.0044, rel=0.2)
    assert facts.split.waiting_seconds == pytest.approx(0.08, rel=0.2)  # half of the ranks wait


def test_clocks_are_aligned_before_starts_are_compared():
    run = samples.build(replace(samples.STRAGGLER, clock_ahead=-40.0))
    assert {f.code for f in find(gather_facts(run))} == {"straggler", "prediction-missed"}
    deaf = replace(run, events=tuple(event for event in run.events if event.kind != "clocks"))
    facts = gather_facts(deaf)
    assert facts.split is not None and facts.split.source == "least wait"
    assert facts.split.transfer_seconds == pytest.approx(0.0044, rel=0.2)
    assert "straggler" in {f.code for f in find(facts)}


def test_waiting_that_the_bytes_do_not_explain_is_not_put_on_the_link():
    shape = replace(samples.HEALTHY_TWO, transfer=lambda step: 0.3)
    answer = answers_of(samples.build(shape))[5]
    assert answer.verdict == "Not its bandwidth."
    assert "network-bound" not in {f.code for f in find(gather_facts(samples.build(shape)))}


def test_a_faster_link_is_foretold_from_the_floor():
    numbers = {n.label: n.value_text for n in answers_of(samples.build(samples.NETWORK_BOUND))[11].numbers}
    assert numbers["Floor of a step"] == "1.93 s"
    assert float(numbers["Step at 2 x the link"].split(" s")[0]) == pytest.approx(2.23 - 1.93 / 2, abs=0.02)
    assert float(numbers["Step at 10 x the link"].split(" s")[0]) == pytest.approx(2.23 - 1.93 * 0.9, abs=0.02)


def test_a_regression_is_made_only_where_bytes_vary():
    run = samples.build(samples.NETWORK_BOUND)
    label = "Waiting per MB sent, by regression"
    nearly = tuple(replace(line, sent_bytes=line.sent_bytes + int(1e5 * line.exchange_seconds)) for line in run.timings)
    assert label not in [number.label for number in answers_of(replace(run, timings=nearly))[11].numbers]
    half = tuple(
        replace(
            line,
            sent_bytes=line.sent_bytes // 2,
            exchange_seconds=line.exchange_seconds / 2,
            wall_seconds=line.wall_seconds - line.exchange_seconds / 2,
        )
        if line.step % 2
        else line
        for line in run.timings
    )
    numbers = {number.label: number.value_text for number in answers_of(replace(run, timings=half))[11].numbers}
    assert float(numbers[label].split(" s")[0]) == pytest.approx(2.1 / 4.73, rel=0.15)
