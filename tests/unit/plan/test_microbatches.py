"""How a step is cut where the recipe leaves it open: by ranks, by memory, and never too small for a sentence."""

import pytest

from dragoman.config import CutRecipe, Recipe
from dragoman.errors import DragomanError
from dragoman.model import size as size_module
from dragoman.model.size import size_of
from dragoman.plan import microbatches
from dragoman.plan.microbatches import (
    LIBRARY_BYTES,
    SAFE_SHARE,
    choose_number,
    cut,
    microbatch_tokens,
    most_number,
    needed_bytes,
    needs_recomputing,
    number_for_ranks,
    value_bytes_of,
)
from dragoman.recipe import load_recipe

GB = 10**9


def auto(name: str = "base", *changes: str) -> Recipe:
    return load_recipe(name, ["batch.num_microbatches=auto", *changes])


def chosen(recipe: Recipe, num_ranks: int = 1, free_bytes: int | None = None, value_bytes: int = 2) -> int:
    return choose_number(recipe, recipe.vocab.size, num_ranks, free_bytes, value_bytes)


@pytest.mark.parametrize("name", ["small", "base"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 8])
def test_without_gpus_it_is_eight_whoever_shares_them(name, num_ranks):
    """As it was before anybody chose: a run on a CPU is the same to the last bit, with however many workers."""
    assert load_recipe(name).batch.num_microbatches == "auto"
    assert chosen(load_recipe(name), num_ranks) == 8


def test_without_gpus_more_ranks_have_one_each():
    assert chosen(auto(), 12) == 12


def test_without_gpus_it_is_fewer_where_sentences_are_long():
    recipe = auto("base", "batch.target_tokens=1400")
    assert (most_number(recipe), chosen(recipe), chosen(recipe, 5)) == (5, 5, 5)
    with pytest.raises(DragomanError, match=r"cut for 6 ranks makes microbatches of 233, and a sentence may have 257"):
        chosen(recipe, 6)


def test_what_the_recipe_names_is_taken():
    assert chosen(load_recipe("wmt14-en-de-classic"), 2, 10**6) == 8


@pytest.mark.parametrize("num_ranks", [1, 3, 4])
def test_a_large_gpu_has_one_for_each_rank(num_ranks):
    assert chosen(auto(), num_ranks, 80 * GB) == num_ranks


@pytest.mark.parametrize("value_bytes", [2, 4])
@pytest.mark.parametrize("num_ranks", [1, 4])
@pytest.mark.parametrize("free_bytes", [10 * GB, 12 * GB, 24 * GB])
def test_a_small_gpu_has_as_many_as_fit_and_no_more(free_bytes, num_ranks, value_bytes):
    recipe = auto("big")
    number = chosen(recipe, num_ranks, free_bytes, value_bytes)
    assert number % num_ranks == 0
    needed = [
        needed_bytes(recipe, recipe.vocab.size, each, value_bytes) for each in (number, number - num_ranks) if each
    ]
    assert needed[0] <= microbatches.safe_bytes(free_bytes)
    assert all(larger > microbatches.safe_bytes(free_bytes) for larger in needed[1:])


def test_less_memory_never_means_fewer():
    recipe = auto("big")
    numbers = [chosen(recipe, 1, gigabytes * GB) for gigabytes in range(9, 100)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 4 and numbers[-1] == 1


def test_muon_wants_memory_for_its_directions():
    recipe, muon = auto("base"), auto("base", "optim.method=muon")
    matrices = size_of(recipe.model, recipe.vocab.size).matrix_parameters
    more = needed_bytes(muon, muon.vocab.size, 1, 2) - needed_bytes(recipe, recipe.vocab.size, 1, 2)
    assert more == 10 * matrices


def test_evaluations_and_partial_sums_take_memory_beside_recorded_passes(monkeypatch):
    model, size = auto("base").model, size_of(auto("base").model, 32_768)

    def fixed_bytes() -> int:
        return size.train_bytes(0, model, 32_768, 2)

    whole = fixed_bytes()
    monkeypatch.setattr(size_module, "EVALUATION_TOKENS", 0)
    without_evaluation = fixed_bytes()
    assert whole - without_evaluation > 8_000 * 4 * (2 * model.d_model + model.d_ffn), "what its widest layer holds"
    monkeypatch.setattr(size_module, "NORM_PROGRAMS", 0)
    assert without_evaluation - fixed_bytes() == 4 * 32 * 528 * 3 * model.d_model, (
        "six layers have 12 + 18 norms, and 2"
    )
    for name in ("ACTIVATION_PROGRAMS", "LOSS_CHUNK_ELEMENTS"):
        monkeypatch.setattr(size_module, name, 0)
    assert fixed_bytes() == (20 + 4) * size.num_parameters, "two copies of the weights in 2 bytes"
    assert size.train_bytes(0, model, 32_768, 4) == 16 * size.num_parameters + 4 * 32_768 * 512, "not recorded: shared"


def test_a_microbatch_has_a_largest_size():
    assert chosen(auto("base", "batch.target_tokens=300000"), 1, 10**15) == 3


def test_little_more_than_is_needed_may_do_and_less_is_refused():
    """Of a small model with long sentences, whose activations take most."""
    recipe = auto("small", "batch.max_pieces=1000", "batch.target_tokens=4004", "train.recompute=false")
    least = needed_bytes(recipe, recipe.vocab.size, most_number(recipe), 4) + LIBRARY_BYTES
    assert chosen(recipe, 1, round(1.05 * least), 4) == most_number(recipe) == 4
    with pytest.raises(DragomanError, match=r"even with microbatches of 1,001 target tokens") as caught:
        chosen(recipe, 1, round(0.95 * least), 4)
    assert caught.value.message.endswith("are free")
    assert "--set batch.num_microbatches=4" in caught.value.hint


def test_where_little_fits_activations_are_recomputed_rather_than_microbatches_made_tiny():
    recipe = auto("big")
    size = size_of(recipe.model, recipe.vocab.size)

    def free_for(tokens: int, recomputes: bool) -> int:
        needed = size.train_bytes(tokens, recipe.model, recipe.vocab.size, 2, recomputes)
        return round(needed / SAFE_SHARE) + LIBRARY_BYTES + 1

    tight = free_for(1_600, recomputes=False)
    number = chosen(recipe, 1, tight)
    assert microbatch_tokens(recipe, number) > 2 * 1_600
    assert needs_recomputing(recipe, recipe.vocab.size, number, tight, 2)
    assert chosen(auto("big", "train.recompute=false"), 1, tight) == 51_200 // 1_600
    roomy = free_for(12_800, recomputes=False)
    assert chosen(recipe, 1, roomy) == 4
    assert not needs_recomputing(recipe, recipe.vocab.size, 4, roomy, 2)


def test_recomputing_is_as_the_recipe_says():
    for wanted in (True, False):
        recipe = auto("big", f"train.recompute={str(wanted).lower()}")
        assert needs_recomputing(recipe, recipe.vocab.size, 1, 1, 2) == wanted
        assert needs_recomputing(recipe, recipe.vocab.size, 1, 10**15, 2) == wanted
    assert not needs_recomputing(auto("big"), 32_768, 1, None), "a CPU's memory is not looked at"


def test_what_is_measured_before_the_first_step_must_fit_too():
    """Exchanges are timed on a second set of vectors; no number of microbatches makes that smaller."""
    recipe = auto("big")
    measured = size_of(recipe.model, recipe.vocab.size).measure_bytes(2)
    assert measured > 2 * 20 * 200e6 > needed_bytes(recipe, recipe.vocab.size, most_number(recipe), 2)
    measured += LIBRARY_BYTES
    assert chosen(recipe, 2, measured) < most_number(recipe)
    with pytest.raises(DragomanError, match="of GPU memory"):
        chosen(recipe, 2, measured - 1)
    assert chosen(recipe, 1, measured - 1) < most_number(recipe), "one rank exchanges nothing"


def test_the_smallest_ones_hold_the_longest_sentence():
    """The number of the last resort is one that the recipe itself would be allowed to name."""
    recipe = auto("big")
    assert load_recipe("big", [f"batch.num_microbatches={most_number(recipe)}"])
    with pytest.raises(DragomanError, match="does not fit into a microbatch"):
        load_recipe("big", [f"batch.num_microbatches={most_number(recipe) + 1}"])


@pytest.mark.parametrize(("known", "num_ranks", "number"), [(8, 3, 8), (8, 8, 8), (8, 9, 16), (1, 4, 4), (6, 13, 18)])
def test_more_ranks_than_before_cut_what_there_was(known, num_ranks, number):
    assert number_for_ranks(known, num_ranks) == number


def test_a_cut_recipe_differs_in_nothing_else():
    recipe = auto()
    own = cut(recipe, 16)
    assert isinstance(own, CutRecipe)
    assert own.batch.num_microbatches == 16 and recipe.batch.num_microbatches == "auto"
    same = {**own.model_dump(), "batch": {**own.model_dump()["batch"], "num_microbatches": "auto"}}
    assert same == recipe.model_dump()


@pytest.mark.parametrize(
    ("precision", "is_fused", "value_bytes"),
    [("bf16", True, 2), ("bf16", False, 4), ("fp32", True, 4), ("fp64", False, 8)],
)
def test_only_fused_kernels_keep_activations_in_two_bytes(precision, is_fused, value_bytes):
    assert value_bytes_of(precision, is_fused) == value_bytes


@pytest.mark.parametrize("value_bytes", [2, 4])
def test_memory_grows_with_text_and_model(value_bytes):
    recipe = auto()
    whole, half = (needed_bytes(recipe, 32_768, number, value_bytes) for number in (1, 2))
    weights = needed_bytes(recipe, 32_768, 10**9, value_bytes)
    assert weights > 60e6 * 16
    assert 1.6 < (whole - weights) / (half - weights) < 2.4
    assert needed_bytes(auto("big"), 32_768, 2, value_bytes) > 2 * whole


def test_mixed_precision_takes_about_half():
    mixed, single = (needed_bytes(auto(), 32_768, 1, value_bytes) for value_bytes in (2, 4))
    assert 0.35 < mixed / single < 0.7
