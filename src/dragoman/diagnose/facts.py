"""Everything the questions and rules look at, gathered once from a run's records: arrays and figures, no verdicts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ValidationError

from dragoman.config import ModelConfig, OptimConfig
from dragoman.diagnose.learning import Learning, learning_of
from dragoman.diagnose.link import Link, cards_of, link_of
from dragoman.diagnose.machine_series import HostSeries, host_series
from dragoman.diagnose.series import StepSeries, TimingGrid, has_clocks, step_series, timing_grid
from dragoman.diagnose.split import Split, split_of
from dragoman.diagnose.statistics import finite_mean, finite_median
from dragoman.run.figures import AttemptSpan, attempt_spans
from dragoman.run.reader import RunRecord

MIN_STEPS = 20  # fewer say nothing about a run
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Facts:
    """A run as its diagnosis sees it. None and empty arrays are what was not recorded."""

    run: RunRecord
    steps: StepSeries
    grid: TimingGrid | None
    split: Split | None
    hosts: tuple[HostSeries, ...]  # of the samples
    link: Link | None  # None on one machine
    learning: Learning
    spans: tuple[AttemptSpan, ...]
    num_hosts: int
    has_clocks: bool

    @property
    def num_steps(self) -> int:
        return len(self.steps)

    @property
    def last_step(self) -> int:
        return int(self.steps.step[-1]) if len(self.steps) else 0

    @property
    def num_ranks(self) -> int:
        return max(1, self.run.manifest.world_size)

    @property
    def duration_seconds(self) -> float:
        return sum(span.seconds for span in self.spans)

    @property
    def is_enough(self) -> bool:
        return len(self.steps) >= MIN_STEPS

    @cached_property
    def mean_step_seconds(self) -> float | None:
        """Without validation and checkpoints."""
        return finite_mean(self.steps.seconds)

    @cached_property
    def median_step_seconds(self) -> float | None:
        return finite_median(self.steps.seconds[self.steps.is_steady])

    @property
    def target_tokens_per_second(self) -> float | None:
        seconds = float(np.nansum(self.steps.seconds))
        return float(np.nansum(self.steps.target_tokens)) / seconds if seconds > 0 else None

    @property
    def price_per_second(self) -> float | None:
        price = self.run.manifest.price_per_hour
        return price / 3600 if price else None

    @property
    def currency(self) -> str | None:
        return self.run.manifest.currency

    @property
    def max_steps(self) -> int | None:
        value = recipe_value(self.run, "train", "max_steps")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def is_finished(self) -> bool:
        return bool(self.spans) and self.spans[-1].ending == "finished"

    @cached_property
    def optim(self) -> OptimConfig | None:
        return _section(self.run, "optim", OptimConfig)

    @cached_property
    def model(self) -> ModelConfig | None:
        return _section(self.run, "model", ModelConfig)


def gather_facts(run: RunRecord) -> Facts:
    """One pass over the records. Reads the sentences of three evaluations at most, through the run."""
    steps = step_series(run.steps)
    grid = timing_grid(run.timings, run.events)
    are_aligned = grid is not None and has_clocks(run.events, list(dict.fromkeys(grid.hosts)))
    hosts = host_series(run.samples, run.events, cards_of(run))
    num_hosts = _num_hosts(run, grid)
    return Facts(
        run=run,
        steps=steps,
        grid=grid,
        split=split_of(grid, are_aligned) if grid is not None else None,
        hosts=hosts,
        link=link_of(run, grid, hosts, num_hosts),
        learning=learning_of(run, steps),
        spans=tuple(attempt_spans(run)),
        num_hosts=num_hosts,
        has_clocks=are_aligned,
    )


def recipe_value(run: RunRecord, section: str, name: str) -> object:
    """A setting of the recipe, or None: an old run may lack it."""
    part = run.manifest.recipe.get(section)
    return cast("dict[str, Any]", part).get(name) if isinstance(part, dict) else None


def _section(run: RunRecord, name: str, kind: type[S]) -> S | None:
    part = run.manifest.recipe.get(name)
    try:
        return kind.model_validate(part) if isinstance(part, dict) else None
    except ValidationError:
        return None


def _num_hosts(run: RunRecord, grid: TimingGrid | None) -> int:
    if run.manifest.exchange is not None:
        return max(1, run.manifest.exchange.num_hosts)
    return grid.num_hosts if grid is not None else max(1, len(run.manifest.hosts))
