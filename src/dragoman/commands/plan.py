"""`dragoman plan`: what a run would take and cost, from a profile or from machines that are not rented yet."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.plan.setting import Prices, Setting
    from dragoman.plan.text import TextFacts
    from dragoman.run.promise import Profile

WHERE = "name a profile that was measured, --profile profile.json, or machines: --machines 2x2:V100 --link 1gbit"


def plan(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Recipe: a shipped name or a TOML file.")],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data folder; without it, what the recipe lets one expect.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `doctor` measured: a profile.json, or a run folder.")
    ] = None,
    machines: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Not rented yet: HOSTSxGPUS:NAME, 2x2:V100 or 1x8:H100; 2xcpu.")
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="SPEED", help="Port of each host: 1gbit; or measured throughput: 220MB/s.")
    ] = None,
    price: Annotated[float | None, typer.Option(help="Per hour, of all machines together.")] = None,
    price_per_gb: Annotated[float | None, typer.Option(help="Of traffic that leaves a host.")] = None,
    price_per_gb_month: Annotated[float | None, typer.Option(help="Of disk.")] = None,
    currency: Annotated[str, typer.Option(help="Of the prices.")] = "$",
    steps: Annotated[int | None, typer.Option(metavar="N", help="Instead of the recipe's train.max_steps.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the prediction is written.")] = Path(
        "prediction.json"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the prediction as JSON.")] = False,
) -> None:
    """Predict step time, run time and cost of a recipe, before renting too."""
    _check_options(profile, machines, link, steps)
    from dragoman.commands.plan_output import print_prediction, to_json
    from dragoman.plan.prediction import predict_run
    from dragoman.plan.setting import Prices
    from dragoman.recipe import load_recipe
    from dragoman.run.promise import write_promise

    prices = Prices(
        _checked_price("--price", price),
        _checked_price("--price-per-gb", price_per_gb),
        _checked_price("--price-per-gb-month", price_per_gb_month),
        currency,
    )
    wanted = load_recipe(recipe, changes or [])
    if steps is not None:
        wanted = wanted.model_copy(update={"train": wanted.train.model_copy(update={"max_steps": steps})})
    setting = _setting(wanted, _text(data), profile, machines, link, prices)
    prediction = predict_run(setting)
    write_promise(out, prediction)
    if as_json:
        typer.echo(to_json(prediction))
    else:
        print_prediction(prediction, setting, out)


def _check_options(profile: Path | None, machines: str | None, link: str | None, steps: int | None) -> None:
    if profile is None and machines is None:
        wrong = "--link without --machines says too little" if link else "on which machines?"
        raise DragomanError(wrong, WHERE)
    if profile is not None and machines is not None:
        raise DragomanError("--profile and --machines both say what the machines are", "leave one of them out")
    if profile is not None and link is not None:
        raise DragomanError(
            "--link has no effect with --profile, which measured the link",
            "leave it out; the table of what-ifs varies it",
        )
    if steps is not None and steps < 1:
        raise DragomanError(f"--steps {steps} is no number of steps", "give 1 or more")


def _checked_price(option: str, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise DragomanError(f"{option} {value:g} is no price", "give 0 or more")
    return value


def _text(data: Path | None) -> "TextFacts | None":
    if data is None:
        return None
    from dragoman.data.manifest import read_manifest
    from dragoman.plan.text import text_of_manifest
    from dragoman.run.checkpoint_files import VOCAB

    manifest = read_manifest(data)
    vocab = data / VOCAB
    return text_of_manifest(manifest, vocab.stat().st_size if vocab.is_file() else 0)


def _setting(
    recipe: "Recipe",
    text: "TextFacts | None",
    profile: Path | None,
    machines: str | None,
    link: str | None,
    prices: "Prices",
) -> "Setting":
    from dragoman.plan.machines import parse_link, parse_machines
    from dragoman.plan.setting import setting_of_machines, setting_of_profile

    if profile is not None:
        return setting_of_profile(recipe, _profile(profile), text, prices)
    assert machines is not None, "one of them was given"
    rate = None if link is None else parse_link(link)
    return setting_of_machines(recipe, parse_machines(machines), rate, text, prices)


def _profile(path: Path) -> "Profile":
    from dragoman.run.folder import RunFolder
    from dragoman.run.promise import Profile, read_promise

    if not path.is_dir():
        return read_promise(path, Profile)
    inside = RunFolder(path).profile_path
    if not inside.is_file():
        raise DragomanError(
            f"{path} has no {inside.name}", "a run on several hosts writes one; `dragoman doctor` does too"
        )
    return read_promise(inside, Profile)
