"""Recipes as a stranger or a slip of the keyboard leaves them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.recipe import load_recipe


def test_damaged_recipes_are_one_line_or_a_recipe(tried):
    tried("recipe", 300)


def test_damaged_changes_are_one_line_or_a_recipe(tried):
    tried("change", 200)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60).filter(lambda text: "\0" not in text))
def test_any_text_given_with_set_is_one_line_or_a_recipe(text):
    try:
        load_recipe("tiny", [text])
    except DragomanError as error:
        assert "\n" not in error.message


@pytest.mark.parametrize(
    "text", ["learning_rate = " + "7" * 5_000, "learning_rate = " + "[" * 5_000, "warmup_steps = 0x" + "f" * 5_000]
)
def test_what_no_reader_can_hold_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "giant.toml"
    path.write_text(f"[optim]\n{text}\n")
    with pytest.raises(DragomanError) as refusal:
        load_recipe(str(path))
    assert len(refusal.value.message) < 500


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
def test_a_rate_that_is_no_number_is_refused(value):
    with pytest.raises(DragomanError, match=r"optim\.learning_rate"):
        load_recipe("tiny", [f"optim.learning_rate={value}"])


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "."])
def test_a_name_that_no_disk_could_have_is_no_recipe(name):
    with pytest.raises(DragomanError, match="there is no recipe"):
        load_recipe(name)


def test_a_model_larger_than_the_machine_is_refused_before_it_is_made():
    import torch

    from dragoman.train.build import build_model

    recipe = load_recipe("tiny", ["model.d_model=1000000000", "model.num_heads=1"])
    with pytest.raises(DragomanError, match="the weights alone would take"):
        build_model(recipe, 1_000, torch.device("cpu"))
