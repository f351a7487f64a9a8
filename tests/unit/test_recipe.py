"""Recipes as files: found, changed by `--set`, and refused in one line when something is wrong."""

import pytest
import tomli_w

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.recipe import known_keys, load_recipe, recipe_fields, shipped_recipes


def refusal(*arguments) -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        load_recipe(*arguments)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_recipe_states_only_what_differs():
    recipe = load_recipe("tiny")
    assert recipe.name == "tiny"
    assert recipe.model.d_model == 256
    assert recipe.decode == Recipe().decode


def test_a_file_is_read_like_a_shipped_recipe(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[optim]\nwarmup_steps = 7\n")
    recipe = load_recipe(str(path))
    assert (recipe.name, recipe.optim.warmup_steps) == ("mine", 7)


def test_what_is_written_is_read_back(tmp_path):
    recipe = load_recipe("wmt14-en-de-classic", ["optim.betas=[0.9, 0.99]"])
    path = tmp_path / "recipe.toml"
    path.write_text(tomli_w.dumps(recipe.model_dump(exclude_none=True)))
    assert load_recipe(str(path)) == recipe


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("optim.warmup_steps=8000", lambda recipe: recipe.optim.warmup_steps == 8_000),
        ("optim.learning_rate=1e-3", lambda recipe: recipe.optim.learning_rate == 1e-3),
        ("train.max_minutes=5", lambda recipe: recipe.train.max_minutes == 5),
        ("model.norm=post", lambda recipe: recipe.model.norm == "post"),
        ("model.norm='post'", lambda recipe: recipe.model.norm == "post"),
        ("evaluate.decode=false", lambda recipe: recipe.evaluate.decode is False),
        ("optim.betas=[0.8, 0.9]", lambda recipe: recipe.optim.betas == [0.8, 0.9]),
        ("data.dev=['a']", lambda recipe: recipe.data.dev == ["a"]),
        ("batch.num_microbatches=2", lambda recipe: recipe.batch.num_microbatches == 2),
        ("batch.num_microbatches=auto", lambda recipe: recipe.batch.num_microbatches == "auto"),
        ("about=a = b", lambda recipe: recipe.about == "a = b"),
    ],
)
def test_set_changes_one_setting(change, value):
    assert value(load_recipe("tiny", [change]))


def test_the_last_change_of_a_setting_counts():
    assert load_recipe("tiny", ["train.seed=2", "train.seed=3"]).train.seed == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("optim.warmup_step=1", "unknown key 'optim.warmup_step', did you mean 'optim.warmup_steps'?"),
        ("train.warmup_steps=1", "did you mean 'optim.warmup_steps'?"),
        ("checkpoint.max_steps=1", "did you mean 'train.max_steps'?"),
        ("warmup_steps=1", "did you mean 'optim.warmup_steps'?"),
        ("optm.warmup_steps=1", "unknown key 'optm', did you mean 'optim'?"),
        ("modell.d_model=1", "did you mean 'model"),
        ("optim.warmup_steps=many", 'optim.warmup_steps: Input should be a valid integer, not "many"'),
        ("optim.warmup_steps=0", "greater than or equal to 1, not 0"),
        ("optim.warmup_steps=1.5", "optim.warmup_steps"),
        ("optim.betas=[0.9]", "optim.betas"),
        ("optim.betas=[0.9, 'x']", "optim.betas"),
        (
            "batch.num_microbatches=many",
            "batch.num_microbatches: Input should be a valid integer or 'auto', not \"many\"",
        ),
        (
            "batch.num_microbatches=0",
            "batch.num_microbatches: Input should be greater than or equal to 1 or 'auto', not 0",
        ),
        ("optim.betas=['x', 'y']", 'optim.betas: Input should be a valid number, not "x"'),
        ("model.norm=before", "model.norm: Input should be 'pre' or 'post'"),
        ("model.num_heads=3", "d_model 256 must be even and a multiple of num_heads 3"),
        ("batch.max_pieces=2000", "batch.max_pieces 2000"),
        ("model=3", "model"),
        ("about.text=1", "about is not a section"),
        ("warmup", "is not key=value"),
        ("=3", "is not key=value"),
    ],
)
def test_a_wrong_change_is_one_line_that_helps(change, words):
    assert words in refusal("tiny", [change]).message


def test_a_key_like_no_other_gets_no_guess():
    assert "did you mean" not in refusal("tiny", ["zzzzzzzz=1"]).message


def test_a_misspelled_recipe_names_the_nearest():
    error = refusal("tinny")
    assert "there is no recipe 'tinny', did you mean 'tiny'?" in error.message
    assert all(name in error.hint for name in shipped_recipes())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[optim\n", "is not valid TOML"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[optim]\nwarmup = 3\n", "unknown key 'optim.warmup'"),
        (b"[optim]\nwarmup_steps = '3'\n", 'not "3"'),
        (b"optim = 3\n", "optim"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(tmp_path, content, words):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    message = refusal(str(path)).message
    assert words in message
    assert str(path) in message


def test_every_setting_is_documented_once_with_its_type_and_default():
    rows = list(recipe_fields())
    keys = [key for key, *_ in rows]
    assert len(keys) == len(set(keys))
    assert set(keys) <= set(known_keys())
    sections = Recipe().model_dump()
    settings = {
        f"{section}.{key}" for section, values in sections.items() if isinstance(values, dict) for key in values
    }
    assert settings | {"name", "about"} == set(keys)
    for key, kind, default, meaning in rows:
        assert kind and default and meaning, key
    assert ("batch.num_microbatches", "integer | auto", '"auto"') in {row[:3] for row in rows}
    assert ("optim.schedule", "transformer | cosine | linear | wsd", '"transformer"') in {row[:3] for row in rows}
