"""Which settings differ: what was in force counts, equal ones are left out."""

from dataclasses import replace

import diagnose_samples as samples
from diagnose_samples import Shape
from dragoman.diagnose.comparison.settings import SettingRow, differences_text, differing_settings
from dragoman.diagnose.comparison.side import side_of
from dragoman.diagnose.facts import gather_facts

TWO = Shape(num_hosts=2, num_steps=20, eval_every=10)


def rows(*runs: samples.MemoryRun) -> dict[str, tuple[str, ...]]:
    sides = [side_of(str(number), gather_facts(run)) for number, run in enumerate(runs)]
    return {row.key: row.values for row in differing_settings(sides)}


def with_exchange(run: samples.MemoryRun, **settings: object) -> samples.MemoryRun:
    assert run.manifest.exchange is not None
    exchange = replace(run.manifest.exchange, settings={**run.manifest.exchange.settings, **settings})
    return replace(run, manifest=replace(run.manifest, exchange=exchange))


def test_equal_runs_have_no_rows():
    assert rows(samples.build(TWO), samples.build(TWO)) == {}


def test_machines_ranks_and_link():
    found = rows(samples.build(TWO), samples.build(Shape(num_steps=20, eval_every=10)))
    assert found == {
        "hosts": ("2 (a, b)", "1 (a)"),
        "ranks": ("2", "1"),
        "exchange": ("dense fp32", "none, one rank"),
        "link": ("944 Mb/s", "one host"),
    }


def test_two_measurements_of_one_link_are_alike():
    assert rows(samples.build(TWO), samples.build(replace(TWO, capacity=115e6))) == {}
    assert rows(samples.build(TWO), samples.build(replace(TWO, capacity=59e6))) == {"link": ("944 Mb/s", "472 Mb/s")}


def test_of_the_exchange_what_was_in_force_counts():
    run = samples.build(TWO)
    asked = {**run.manifest.recipe, "sync": {**run.manifest.recipe["sync"], "method": "dense"}}
    assert rows(run, with_exchange(replace(run, manifest=replace(run.manifest, recipe=asked)), precision="auto")) == {}
    # A setting that the method does not read is none.
    assert rows(run, with_exchange(run, outer_rate=0.5)) == {}
    loose = [with_exchange(run, method="diloco", precision="sign", outer_rate=rate) for rate in (0.5, 0.8)]
    assert rows(*loose) == {"sync.outer_rate": ("0.5", "0.8")}
    assert rows(run, loose[0])["exchange"] == ("dense fp32", "diloco sign every 1")


def test_of_the_microbatches_what_was_in_force_counts():
    """A recipe that left it open and one that named the same number are alike; it is no matter of learning."""
    run = samples.build(TWO)
    recipe = {**run.manifest.recipe, "batch": {**run.manifest.recipe["batch"], "num_microbatches": "auto"}}
    manifests = [replace(run.manifest, num_microbatches=number, recipe=recipe) for number in (2, 4)]
    settled = [replace(run, manifest=manifest) for manifest in manifests]
    assert rows(run, settled[0]) == {}
    assert rows(run, settled[1]) == {"batch.num_microbatches": ("2", "4")}
    assert not SettingRow("batch.num_microbatches", ("2", "4")).is_about_learning
    assert SettingRow("batch.target_tokens", ("2", "4")).is_about_learning


def test_nested_keys_lists_and_keys_that_one_run_lacks():
    run = samples.build(TWO)
    optim = {**run.manifest.recipe["optim"], "betas": [0.9, 0.997]}
    optim.pop("max_norm")
    found = rows(run, replace(run, manifest=replace(run.manifest, recipe={**run.manifest.recipe, "optim": optim})))
    assert found["optim.betas"] == ("0.9, 0.98", "0.9, 0.997")
    assert found["optim.max_norm"][1] == "-"
    assert len(found) == 2


def test_the_exact_sum_is_no_matter_of_learning():
    assert not SettingRow("exchange", ("dense fp32", "none, one rank")).is_about_learning
    assert SettingRow("exchange", ("dense fp32", "int8")).is_about_learning
    assert not SettingRow("ranks", ("1", "2")).is_about_learning


def test_many_settings_are_cut_short():
    found = [SettingRow(f"optim.{name}", ("1", "2")) for name in "vwxyz"]
    assert differences_text(found[:1]) == "optim.v differs (2 against 1)"
    text = differences_text(found)
    assert text == "optim.v (2 against 1), optim.w (2 against 1), optim.x (2 against 1) and 2 more settings differ"
