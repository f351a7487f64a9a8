"""Training on this machine: workers started from here, or this process as one of torchrun's."""

import math
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.train.job import Job

WORKER = "dragoman.train.worker"


@dataclass(frozen=True)
class Order:
    """What the user asked for, wherever it will run."""

    recipe: "Recipe"
    data: Path
    run: Path
    init: str | None
    command: str  # as it was typed
    recipe_words: tuple[str, ...]  # the recipe's name and its changes, likewise
    asks: bool = False  # a person at this terminal may say no to what is predicted
    most_waiting: float | None = None  # share of a step

    def job(self, num_workers: int) -> "Job":
        from dragoman.train.job import make_job

        return make_job(
            self.recipe,
            self.data,
            self.run,
            num_workers,
            self.command,
            self.init,
            most_waiting=self.most_waiting,
            say=say,
        )


def say(text: str) -> None:
    typer.echo(text, err=True)


def parse_share(text: str) -> float:
    """'50%' -> 0.5."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 < percent <= 100:
        raise DragomanError(f"--abort-if-waiting {text!r} is no share of a step", "for example --abort-if-waiting 50%")
    return percent / 100


def advise_rate(plain: "Recipe", changed: "Recipe") -> None:
    """More text per step wants a higher learning rate; whoever asks for the one should know about the other."""
    factor = changed.batch.target_tokens / plain.batch.target_tokens
    if factor > 1 and changed.optim.learning_rate == plain.optim.learning_rate:
        rate = plain.optim.learning_rate * factor**0.5
        say(
            f"note: a step has {factor:.2g} times the target tokens of the recipe; a learning rate of {rate:.2g} "
            f"(now {plain.optim.learning_rate:.2g}) would go with it: --set optim.learning_rate={rate:.2g}"
        )


def train_here(order: Order, num_workers: int, mirror: str | None) -> int:
    """Workers of this machine alone; they end with this command."""
    from dragoman.launch.copying.mirror import check_mirror, start_mirror
    from dragoman.launch.local import start_workers

    job = order.job(num_workers)
    if mirror is None:
        return start_workers(WORKER, [job.to_json()], num_workers)
    say(f"mirrored to {check_mirror(mirror)}")
    copying = start_mirror(order.run, mirror, say)
    try:
        return start_workers(WORKER, [job.to_json()], num_workers)
    finally:
        copying.stop()


def train_as_rank(order: Order) -> NoReturn:
    """torchrun or a scheduler started this process as one rank of many."""
    from dragoman.launch.local import CARD_VARIABLES, card_towards
    from dragoman.train.worker import agree_on_job, end_with_launcher, leave, run_rank

    address = socket.gethostbyname(os.environ["MASTER_ADDR"])
    for name in CARD_VARIABLES:
        os.environ.setdefault(name, card_towards(address))
    end_with_launcher()
    leave(run_rank(lambda world: agree_on_job(world, lambda: order.job(int(os.environ["WORLD_SIZE"])))))


def show_settings() -> None:
    """Every key of a recipe."""
    from rich.console import Console
    from rich.table import Table

    from dragoman.recipe import recipe_fields, shipped_recipes

    table = Table("key", "type", "default", "meaning", box=None, header_style="bold")
    for row in recipe_fields():
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"\nShipped recipes: {', '.join(shipped_recipes())}. Change a setting with --set key=value.")
