"""Whole predictions: the runs of 2019, measured profiles, what-ifs and the one line."""

from dataclasses import replace

import pytest

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.model.size import size_of
from dragoman.plan.compute import fitted, method_seconds
from dragoman.plan.machines import parse_link, parse_machines
from dragoman.plan.prediction import predict_run
from dragoman.plan.setting import Prices, setting_of_machines, setting_of_profile, settled, with_sync
from dragoman.plan.text import TextFacts
from dragoman.plan.traffic import sync_of
from dragoman.plan.whatif import break_even_rate, with_hosts
from dragoman.recipe import load_recipe
from dragoman.run.promise import (
    ComputeProfile,
    HostProfile,
    LinkProfile,
    Prediction,
    Profile,
    SumTime,
    read_promise,
    write_promise,
)

CLASSIC = ("sync.method=dense", "sync.precision=fp32", "train.precision=bf16")


def classic(link: str, **prices) -> Prediction:
    recipe = load_recipe("wmt14-en-de-classic", CLASSIC)
    return predict_run(
        setting_of_machines(recipe, parse_machines("2x2:V100"), parse_link(link), None, Prices(**prices))
    )


@pytest.mark.parametrize(
    ("link", "low", "high"), [("100mbit", 29.0, 31.0), ("1gbit", 3.0, 3.3), ("221MB/s", 1.6, 1.75)]
)
def test_the_steps_of_2019(link, low, high):
    prediction = classic(link)
    assert prediction.sent_bytes == pytest.approx(365e6, rel=0.03)
    assert low <= prediction.step.total_seconds <= high
    assert prediction.low_step_seconds < prediction.step.total_seconds < prediction.high_step_seconds
    assert not prediction.is_measured


def test_the_bill_of_2019():
    """50,000 steps at 29.6 s and $14.30 an hour are about $5,900."""
    prediction = classic("100mbit", per_hour=14.3)
    assert prediction.cost.machines == pytest.approx(5_900, rel=0.05)
    assert prediction.num_epochs == pytest.approx(11.3, abs=0.1)
    assert prediction.step.waiting_share > 0.98
    assert prediction.line.startswith("365 MB/step each way at 95.6 Mb/s: 31 s a step, 4")
    assert prediction.line.endswith("99 % waiting")


def small(*changes: str) -> Recipe:
    return load_recipe("tiny", changes)


def profile_of(recipe: Recipe, **link) -> Profile:
    compute = ComputeProfile(
        recipe_hash="",
        device="cpu",
        precision="fp32",
        num_parameters=size_of(recipe.model, recipe.vocab.size).num_parameters,
        num_microbatches=recipe.batch.num_microbatches,
        forward_seconds=0.2,
        backward_seconds=0.3,
        optimizer_seconds=0.01,
        num_local_ranks=1,
        method_seconds={"diloco": 0.05, "powersgd rank 4": 0.07},
        target_tokens=recipe.batch.target_tokens,
    )
    hosts = (HostProfile("a", price_per_hour=1.0), HostProfile("b", price_per_hour=2.0))
    values = {"bytes_per_second": 12e6, "latency_seconds": 0.001, **link}
    return Profile(0.0, hosts, LinkProfile(**values), compute)


def measured(*changes: str, **link) -> Prediction:
    recipe = small(*changes)
    return predict_run(setting_of_profile(recipe, profile_of(recipe, **link)))


def test_a_profile_is_added_up():
    """tiny is one bucket: nothing of it can travel before the backward pass ends."""
    prediction = measured("sync.method=dense")
    assert prediction.is_measured
    assert prediction.step.compute_seconds == pytest.approx(2 * 0.5)
    sent = 4 * prediction.checkpoint_files["weights.safetensors"] / 4
    assert prediction.step.exchange_seconds == pytest.approx(sent / 12e6 + 0.002, rel=0.002)
    assert prediction.price_per_hour == 3.0
    total = prediction.step.total_seconds
    assert (prediction.low_step_seconds, prediction.high_step_seconds) == pytest.approx((0.9 * total, 1.1 * total))


def test_measured_sums_and_arithmetic_are_used():
    sums = (SumTime(1_000_000, 1.0), SumTime(30_000_000, 30.0))
    assert measured("sync.method=dense", sums=sums).step.exchange_seconds == pytest.approx(26.22, abs=0.01)
    diloco = measured("sync.method=diloco")
    assert diloco.step.compute_seconds == pytest.approx(1.05)
    assert diloco.step.exchange_seconds == 0.0
    assert measured("sync.method=powersgd").step.compute_seconds == pytest.approx(1.07)


def test_arithmetic_that_nobody_timed_is_guessed_from_the_optimizer():
    compute = profile_of(small()).compute
    assert compute is not None
    assert method_seconds(compute, sync_of("dense")) == 0.0
    assert method_seconds(compute, sync_of("dense", precision="bf16")) == pytest.approx(0.004)
    assert method_seconds(compute, sync_of("powersgd", matrix_rank=4)) == 0.07


def test_a_profile_of_another_batch_is_scaled_and_not_called_measured():
    recipe = small()
    compute = profile_of(recipe).compute
    assert compute is not None
    same, is_same = fitted(compute, small("train.max_steps=7", "sync.method=int8"), 4_000)
    assert is_same and same == compute
    accumulated, is_same = fitted(compute, small("batch.target_tokens=8192", "batch.num_microbatches=8"), 4_000)
    assert is_same and accumulated.num_microbatches == 8
    larger, is_same = fitted(compute, small("batch.target_tokens=8192"), 4_000)
    assert not is_same and larger.forward_seconds == pytest.approx(0.4)


def test_a_profile_knows_the_vocabulary_it_was_timed_with():
    recipe = small("vocab.size=4000")
    text = size_of(recipe.model, 1_500)
    measured_there = profile_of(recipe)
    assert measured_there.compute is not None
    compute = replace(measured_there.compute, num_parameters=text.num_parameters, vocab_size=1_500)
    setting = setting_of_profile(small("vocab.size=4000", "sync.method=int8"), replace(measured_there, compute=compute))
    assert setting.is_measured and setting.text.vocab_size == 1_500
    other = setting_of_profile(small("model.d_model=128"), replace(measured_there, compute=compute))
    assert not other.is_measured and other.text.vocab_size == recipe.vocab.size, "another model has its own"


def test_several_hosts_without_a_link_are_refused():
    recipe = small()
    with pytest.raises(DragomanError, match="no link"):
        setting_of_profile(recipe, replace(profile_of(recipe), link=None))
    with pytest.raises(DragomanError, match="joined by a link"):
        setting_of_machines(recipe, parse_machines("2x1:T4"))


def test_auto_is_settled_as_training_settles_it():
    recipe = small()
    slow = settled(setting_of_profile(recipe, profile_of(recipe)))
    assert (slow.recipe.sync.method, slow.recipe.sync.every_steps) == ("diloco", 4)
    fast = settled(setting_of_profile(recipe, profile_of(recipe, bytes_per_second=1e10)))
    assert fast.recipe.sync.method == "dense"
    alone = settled(setting_of_machines(recipe, parse_machines("1x1:T4")))
    assert alone.recipe.sync.method == "dense"


def test_the_line_names_card_and_port():
    prediction = measured(
        "sync.method=dense",
        interfaces={"a": "eth0", "b": "eth0"},
        card_bits_per_second={"a": 10**9, "b": 10**9},
        alone_bytes_per_second=12e6,
    )
    assert " over eth0 at 96 Mb/s: 3.2 s a step, 2 h 41 min, $8.09" in prediction.line
    assert prediction.line.endswith("68 % waiting; the card says 1 Gb/s, check the provider's port speed")
    shared = measured("sync.method=dense", alone_bytes_per_second=24e6, card_bits_per_second={"a": 2 * 10**8})
    assert shared.line.endswith("one way alone it carries 192 Mb/s: both directions share one limit")
    assert measured("sync.method=dense", card_bits_per_second={"a": 10**8}).line.endswith("waiting")


def test_what_ifs_have_every_row_and_agree_with_plans_of_their_own():
    recipe = small("sync.method=dense")
    setting = setting_of_machines(recipe, parse_machines("2x1:T4"), 12e6, None, Prices(per_hour=2.0))
    rows = {row.name: row for row in predict_run(setting).what_if}
    assert list(rows) == [
        "one machine", "link x2", "link x10", "dense bf16", "int8", "powersgd rank 4", "diloco sign every 4",
        "diloco sign every 16", "4 hosts", "8 hosts", "batch x2",
    ]  # fmt: skip
    faster_link = setting_of_machines(recipe, parse_machines("2x1:T4"), 24e6)
    assert rows["link x2"].step_seconds == pytest.approx(predict_run(faster_link).step.total_seconds)
    bf16 = predict_run(with_sync(setting, sync_of("dense", precision="bf16")))
    assert rows["dense bf16"].step_seconds == pytest.approx(bf16.step.total_seconds)
    four = predict_run(setting_of_machines(recipe, parse_machines("4x1:T4"), 12e6, None, Prices(per_hour=4.0)))
    assert rows["4 hosts"].step_seconds == pytest.approx(four.step.total_seconds)
    assert rows["4 hosts"].cost == pytest.approx(4.0 * four.train_seconds / 3600)
    alone = predict_run(setting_of_machines(recipe, parse_machines("1x1:T4"), None, None, Prices(per_hour=1.0)))
    assert rows["one machine"].step_seconds == pytest.approx(alone.step.total_seconds)
    assert rows["one machine"].cost == pytest.approx(alone.train_seconds / 3600)
    assert rows["batch x2"].run_seconds == pytest.approx(1_500 * rows["batch x2"].step_seconds)
    assert rows["one machine"].limit == "compute" and rows["link x2"].limit == "exchange"
    assert "some ranks have none" in rows["8 hosts"].note and "x1.41" in rows["batch x2"].note


def test_the_break_even_is_where_both_take_as_long():
    recipe = load_recipe("base", ["sync.method=dense"])
    setting = settled(setting_of_machines(recipe, parse_machines("2x1:V100"), 12e6))
    prediction = predict_run(setting)
    alone = prediction.single_host_step_seconds
    assert alone is not None
    rate = break_even_rate(setting, alone)
    assert rate is not None
    at_rate = predict_run(setting_of_machines(recipe, parse_machines("2x1:V100"), rate))
    assert at_rate.step.total_seconds == pytest.approx(alone, rel=0.01)
    assert "beat one from" in prediction.break_even and "times as slow as one" in prediction.break_even


def test_hosts_that_have_nothing_to_share_never_pay():
    recipe = small("batch.num_microbatches=1", "sync.method=dense")
    setting = settled(setting_of_machines(recipe, parse_machines("2x1:T4"), 1e9))
    assert "whatever the link" in predict_run(setting).break_even


def test_one_machine_says_what_a_second_would_do():
    prediction = predict_run(setting_of_machines(load_recipe("base"), parse_machines("1x1:H100")))
    assert prediction.line.startswith("one machine: ") and prediction.sent_bytes == 0
    assert prediction.break_even.startswith("2 hosts with ")
    assert [row.name for row in prediction.what_if] == ["2 hosts", "4 hosts", "8 hosts", "batch x2"]


def test_known_text_gives_epochs_and_stages():
    text = TextFacts(
        4_000,
        1_000,
        30_000,
        40_960,
        100,
        60_000,
        stage_seconds={"fetch": 3.0, "clean": 1.0, "encode": 2.0},
        is_known=True,
    )
    recipe = small()
    prediction = predict_run(setting_of_profile(recipe, profile_of(recipe), text, num_steps=100))
    assert prediction.num_epochs == pytest.approx(10.0)
    stages = {stage.name: stage for stage in prediction.timeline}
    assert list(stages) == ["download", "prepare", "push", "train", "evaluate", "save"]
    assert (stages["download"].seconds, stages["prepare"].seconds) == (3.0, 3.0)
    assert stages["train"].seconds == pytest.approx(100 * prediction.step.total_seconds)
    assert prediction.total_seconds == pytest.approx(sum(stage.seconds for stage in prediction.timeline))
    paid = prediction.total_seconds - 6.0
    assert prediction.cost.machines == pytest.approx(3.0 * paid / 3600)
    assert prediction.checkpoint_files["vocab.model"] == 60_000


def decoding_seconds(kernels: str, beam: int, num_ranks: int = 1) -> float:
    """Of one evaluation on a GPU that computes passes in no time: 2,737 sentences of 28 tokens."""
    recipe = small(f"evaluate.beam={beam}", "evaluate.max_decoded=5000", "evaluate.every_steps=100")
    compute = replace(profile_of(recipe).compute, device="NVIDIA H200", kernels=kernels, forward_seconds=0.0)
    hosts = (HostProfile("a", gpus=("NVIDIA H200",) * num_ranks, num_ranks=num_ranks),)
    text = TextFacts(4_000, 1_000, 28_000, 28_000, num_dev_pairs=2_737)
    setting = setting_of_profile(recipe, Profile(0.0, hosts, None, compute), text, num_steps=100)
    return next(stage.seconds for stage in predict_run(setting).timeline if stage.name == "evaluate")


def test_decoding_is_predicted_by_the_kernels_that_were_timed():
    """The fused ones took 0.457 s for these sentences; torch's take steps of 4 ms in batches of 8,000 tokens."""
    assert decoding_seconds("fused", beam=4) == pytest.approx(0.457, rel=0.1)
    assert decoding_seconds("torch (no Triton)", beam=4) == pytest.approx(39 * 56 * 0.004)


def test_the_fused_decoder_takes_so_many_rows_and_source_tokens_at_once():
    step = 0.457 / 316
    assert decoding_seconds("fused", beam=1) == pytest.approx(3 * 56 * step), "76,636 tokens, 32,768 at a time"
    assert decoding_seconds("fused", beam=8) == pytest.approx(11 * 56 * step), "21,896 rows, 2,048 at a time"
    assert decoding_seconds("fused", beam=8, num_ranks=2) == pytest.approx(6 * 56 * step)


def test_traffic_and_disk_are_billed_for_every_host():
    recipe = small("sync.method=dense")
    prices = Prices(per_gb=0.1, per_gb_month=0.2)
    prediction = predict_run(setting_of_machines(recipe, parse_machines("2x1:T4"), 12e6, None, prices))
    assert prediction.cost.machines is None
    assert prediction.cost.traffic == pytest.approx(0.1 * 2 * 3_000 * prediction.sent_bytes / 1e9)
    months = sum(s.seconds for s in prediction.timeline if s.name not in ("download", "prepare")) / 3600 / 730
    assert prediction.cost.storage == pytest.approx(0.2 * 2 * prediction.disk_bytes / 1e9 * months)


def test_the_first_steps_of_powersgd_travel_whole():
    recipe = small("sync.method=powersgd", "sync.dense_steps=10")
    setting = setting_of_profile(recipe, profile_of(recipe), num_steps=20)
    thin = predict_run(setting)
    dense = predict_run(with_sync(setting, sync_of("dense")))
    assert thin.train_seconds == pytest.approx(10 * thin.step.total_seconds + 10 * dense.step.total_seconds)


def test_replicas_sum_inside_their_host():
    recipe = small("sync.method=diloco")
    two, one = (setting_of_machines(recipe, parse_machines(f"2x{n}:T4"), 1e9) for n in (2, 1))
    assert predict_run(one).step.exchange_seconds == 0.0
    assert predict_run(two).step.exchange_seconds == pytest.approx(two.compute.middle.local_sum_seconds)


def test_a_prediction_survives_its_file(tmp_path):
    prediction = classic("1gbit", per_hour=14.3)
    write_promise(tmp_path / "prediction.json", prediction)
    assert read_promise(tmp_path / "prediction.json", Prediction) == prediction


def test_more_hosts_have_the_same_exchange_and_each_its_price():
    setting = setting_of_machines(small("sync.method=int8"), parse_machines("2x1:T4"), 12e6, None, Prices(per_hour=2.0))
    other = with_hosts(setting, 8)
    assert other.recipe.sync.method == "int8" and other.prices.per_hour == 8.0
    assert with_hosts(other, 8) is other


def test_the_memory_of_the_table_says_how_a_step_is_cut():
    def numbers(machines: str, *changes: str) -> tuple[int, int]:
        setting = setting_of_machines(load_recipe("big", changes), parse_machines(machines), 1e9)
        return setting.recipe.batch.num_microbatches, setting.pieces_per_rank

    assert numbers("1x1:H200") == (1, 1) and numbers("2x4:H200") == (8, 1)
    small, large = numbers("1x1:RTX 3090")[0], numbers("1x1:L40S")[0]
    assert small > large >= 1
    assert numbers("1x1:RTX 3090", "train.precision=fp32")[0] > small
    assert numbers("1x1:RTX 3090", "train.kernels=torch")[0] > small
    assert numbers("4x2:T4")[0] % 8 == 0
    assert numbers("2xcpu") == (8, 4)
    assert numbers("1x1:H200", "batch.num_microbatches=16") == (16, 16)
    prediction = predict_run(setting_of_machines(load_recipe("big"), parse_machines("1x1:H200")))
    assert prediction.num_microbatches == 1
    assert "num_microbatches" not in " ".join(prediction.notes)


def test_more_hosts_are_given_more_microbatches_where_the_recipe_leaves_it_open():
    """Every row is the plan that those machines would have."""
    recipe = load_recipe("base", ["sync.method=dense"])
    rows = {row.name: row for row in predict_run(setting_of_machines(recipe, parse_machines("2x1:T4"), 12e6)).what_if}
    for count in (4, 8):
        own = predict_run(setting_of_machines(recipe, parse_machines(f"{count}x1:T4"), 12e6))
        assert rows[f"{count} hosts"].step_seconds == pytest.approx(own.step.total_seconds)
        assert "some ranks have none" not in rows[f"{count} hosts"].note
    tight = setting_of_machines(load_recipe("base", ["batch.target_tokens=1600"]), parse_machines("2x1:T4"), 12e6)
    assert with_hosts(tight, 4).recipe.batch.num_microbatches == 4
    assert with_hosts(tight, 8).recipe.batch.num_microbatches == 2, "eight would not hold the longest sentence"
    assert "some ranks have none" in predict_run(tight).what_if[-2].note


def test_a_gpu_does_not_get_faster_than_its_kernels_start():
    compute = replace(profile_of(small()).compute, device="NVIDIA H200", forward_seconds=0.01, backward_seconds=0.02)
    tiny = fitted(compute, small("batch.num_microbatches=40"), 4_000)[0]
    assert (tiny.forward_seconds, tiny.backward_seconds) == pytest.approx((0.001, 0.002))
    tinier = fitted(compute, small("batch.target_tokens=409", "batch.num_microbatches=4"), 4_000)[0]
    assert tinier.forward_seconds == pytest.approx(0.001, rel=0.01)
    least = fitted(compute, small("batch.target_tokens=404", "batch.num_microbatches=4", "model.d_model=64"), 4_000)[0]
    assert (least.forward_seconds, least.backward_seconds) == pytest.approx((6 * 0.00015, 12 * 0.00015))
    quick = replace(compute, forward_seconds=0.0005)
    assert fitted(quick, small("batch.num_microbatches=40"), 4_000)[0].forward_seconds == 0.0005


def test_a_profile_says_how_a_step_is_cut():
    recipe = small("batch.num_microbatches=4")
    profile = profile_of(recipe)
    assert profile.compute is not None
    auto = small("batch.num_microbatches=auto")
    as_timed = setting_of_profile(auto, profile)
    assert as_timed.recipe.batch.num_microbatches == 4 and as_timed.is_measured
    other = small("batch.num_microbatches=auto", "batch.target_tokens=8192")
    assert setting_of_profile(other, profile).recipe.batch.num_microbatches == 8, "no GPUs"
    on_gpus = replace(profile, compute=replace(profile.compute, device="H200", gpu_free_bytes=100 * 10**9))
    assert setting_of_profile(other, on_gpus).recipe.batch.num_microbatches == 2, "one for each rank"
    poor = replace(profile, compute=replace(profile.compute, device="old", gpu_free_bytes=650 * 10**6))
    assert setting_of_profile(other, poor).recipe.batch.num_microbatches > 2


def test_the_recipe_of_a_checkpoint_is_the_one_that_was_given():
    files = [
        predict_run(setting_of_machines(load_recipe("base", [change]), parse_machines("1x1:H200"))).checkpoint_files
        for change in ("batch.num_microbatches=auto", "batch.num_microbatches=1")
    ]
    assert files[0]["recipe.toml"] == files[1]["recipe.toml"] + len('"auto"') - len("1")


def test_memory_and_precision_are_noted():
    recipe = load_recipe("big", ["batch.num_microbatches=1"])
    notes = " ".join(setting_of_machines(recipe, parse_machines("1x1:T4")).notes)
    assert "raise batch.num_microbatches" in notes and "no bf16: computed in fp16" in notes
