"""Every figure of a report, by its key, in reading order. An answer names the one that it stands on."""

from collections.abc import Callable

from altair.utils.schemapi import debug_mode

from dragoman.diagnose.facts import Facts
from dragoman.report.charts import files, learning, machines, steps
from dragoman.report.charts.drawing import Figure

FIGURES: tuple[Callable[[Facts], Figure | None], ...] = (
    steps.duration,
    learning.dev_loss,
    learning.scores,
    machines.use,
    machines.link,
    learning.learning_rate,
    files.data_sizes,
    files.checkpoint,
    steps.step_times,
    machines.traffic,
    learning.training_loss,
    learning.gradient_norm,
    steps.speed,
    learning.loss_by_length,
)


def draw_figures(facts: Facts) -> dict[str, Figure]:
    """Every chart for which there are records."""
    with debug_mode(False):
        drawn = [draw(facts) for draw in FIGURES]
    return {figure.key: figure for figure in drawn if figure is not None}
