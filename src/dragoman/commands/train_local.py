"""Training on this machine: workers started from here, or this process as one of torchrun's."""

import math
import os
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.launch.hosts.hosts import Host
    from dragoman.train.job import Job

WORKER = "dragoman.train.worker"


@dataclass(frozen=True)
class Wishes:
    """How far a run may go, what it puts up with, who hears of it, and what comes after it; as typed."""

    max_hours: float | None = None
    max_cost: float | None = None
    price_per_hour: float | None = None  # of all machines together
    notify: str | None = None
    mirror: str | None = None
    when_done: str | None = None
    abort_if_waiting: str | None = None
    min_hosts: int | None = None
    max_restarts: int = 0


@dataclass(frozen=True)
class Order:
    """What the user asked for, wherever it will run."""

    recipe: "Recipe"
    data: Path
    run: Path
    init: str | None
    fork: str | None
    command: str  # as it was typed, but without secrets
    recipe_words: tuple[str, ...]  # the recipe's name and its changes, likewise
    wishes: Wishes = Wishes()
    most_waiting: float | None = None  # share of a step

    @contextmanager
    def prepared(self) -> Generator[None]:
        """From here on a warning of the machine ends the command in order, and workers know whom to tell."""
        from dragoman.launch.local import leaving_when_warned
        from dragoman.run.notices import notices_to

        with leaving_when_warned(), notices_to(self.wishes.notify):
            yield

    def priced(self, hosts: "Sequence[Host]") -> "Order":
        """With the price that is known of all machines: the one that was typed, else the sum of theirs."""
        wishes = self.wishes
        prices = [host.price_per_hour for host in hosts if host.price_per_hour is not None]
        if wishes.price_per_hour is None and hosts and len(prices) == len(hosts):
            wishes = replace(wishes, price_per_hour=sum(prices))
        if wishes.max_cost is not None and not wishes.price_per_hour:
            raise DragomanError(
                "--max-cost needs a price, and there is none",
                "give --price N (per hour, of all machines), or `price = N` for every host in hosts.toml",
            )
        return replace(self, wishes=wishes)

    def job(self, num_workers: int) -> "Job":
        from dragoman.train.job import make_job

        return make_job(
            self.recipe,
            self.data,
            self.run,
            num_workers,
            self.command,
            self.init,
            self.wishes.price_per_hour,
            most_waiting=self.most_waiting,
            max_cost=self.wishes.max_cost,
            fork=self.fork,
            say=say,
        )


def make_order(
    recipe: str,
    changes: list[str],
    data: Path,
    run: Path,
    init: str | None,
    fork: str | None,
    command: str,
    wishes: Wishes,
) -> Order:
    """Everything that can be wrong with the words alone is said here."""
    from dragoman.recipe import load_recipe
    from dragoman.run.notices import VARIABLE, check_address

    address = wishes.notify or os.environ.get(VARIABLE)
    wishes = replace(wishes, notify=None if address is None else check_address(address))
    if init is not None and fork is not None:
        raise DragomanError("--init and --fork are two ways to begin", "--fork takes step and optimizer along")
    _check_amount("--max-hours", wishes.max_hours)
    _check_amount("--max-cost", wishes.max_cost)
    settings = load_recipe(recipe, changes)
    if wishes.max_hours is not None and not 0 < settings.train.max_minutes <= wishes.max_hours * 60:
        changes = [*changes, f"train.max_minutes={wishes.max_hours * 60!r}"]
        settings = load_recipe(recipe, changes)
    words = (recipe, *(word for change in changes for word in ("--set", change)))
    share = wishes.abort_if_waiting
    most_waiting = None if share is None else parse_share(share)
    return Order(settings, data, run, init, fork, command, words, wishes, most_waiting)


def _check_amount(option: str, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise DragomanError(f"{option} {value:g} is no limit", "give a number above 0")


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


def advise_rate(recipe: str, changed: "Recipe") -> None:
    """More text per step wants a higher learning rate; whoever asks for the one should know about the other."""
    from dragoman.recipe import load_recipe

    plain = load_recipe(recipe, [])
    factor = changed.batch.target_tokens / plain.batch.target_tokens
    if factor > 1 and changed.optim.learning_rate == plain.optim.learning_rate:
        rate = plain.optim.learning_rate * factor**0.5
        say(
            f"note: a step has {factor:.2g} times the target tokens of the recipe; a learning rate of {rate:.2g} "
            f"(now {plain.optim.learning_rate:.2g}) would go with it: --set optim.learning_rate={rate:.2g}"
        )


def train_here(order: Order, num_workers: int) -> int:
    """Workers of this machine alone; they end with this command."""
    from dragoman.launch.copying.mirror import check_mirror, start_mirror
    from dragoman.launch.local import keep_training
    from dragoman.launch.restarts import Restarts
    from dragoman.launch.when_done import finish

    order = order.priced([])
    job, wishes = order.job(num_workers), order.wishes
    if nothing_left(order, job.reached_limit()):
        return 0
    if wishes.mirror is not None:
        say(f"mirrored to {check_mirror(wishes.mirror)}")
    mirror = None if wishes.mirror is None else start_mirror(order.run, wishes.mirror, say)
    is_mirrored = True
    try:
        restarts = Restarts(job.folder, wishes.max_restarts)
        code = keep_training(WORKER, job.to_json(), job.attempt, num_workers, restarts, say)
    finally:
        if mirror is not None:
            is_mirrored = mirror.stop()
    finish(wishes.when_done, job.folder, code, is_mirrored, say)
    return code


def nothing_left(order: Order, reached_limit: str | None) -> bool:
    """Whether a run that may not train any more has nothing else to do either; its limit is said."""
    if reached_limit is not None:
        say(reached_limit)
    return reached_limit is not None and order.wishes.mirror is None and order.wishes.when_done is None


def train_as_rank(order: Order) -> NoReturn:
    """torchrun or a scheduler started this process as one rank of many."""
    from dragoman.launch.local import CARD_VARIABLES, card_towards
    from dragoman.train.rank import agree_on_job, leave, run_rank
    from dragoman.train.worker import end_with_launcher

    address = socket.gethostbyname(os.environ["MASTER_ADDR"])
    for name in CARD_VARIABLES:
        os.environ.setdefault(name, card_towards(address))
    order = order.priced([])
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
