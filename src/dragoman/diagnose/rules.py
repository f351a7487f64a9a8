"""The list of rules, each a small pure function of the facts that finds something or nothing. No false alarms."""

from collections.abc import Callable

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import LEVELS, Finding
from dragoman.diagnose.rules_learning import (
    gradient_exploding,
    overfitting,
    plateau,
    rate_too_high,
    rate_too_low,
    resumed_badly,
)
from dragoman.diagnose.rules_machines import (
    checkpoint_heavy,
    dev_leak,
    gpu_throttled,
    many_rejects,
    memory_full,
    validation_heavy,
)
from dragoman.diagnose.rules_network import (
    card_slower_than_it_says,
    input_bound,
    link_slower,
    link_sum_limited,
    network_bound,
    prediction_missed,
    straggler,
)
from dragoman.diagnose.rules_numbers import diverged, rolled_back

# Of two findings of one level the one that stands earlier here is told first.
RULES: tuple[Callable[[Facts], Finding | None], ...] = (
    diverged,
    rolled_back,
    gradient_exploding,
    rate_too_high,
    resumed_badly,
    overfitting,
    network_bound,
    link_slower,
    straggler,
    input_bound,
    link_sum_limited,
    card_slower_than_it_says,
    validation_heavy,
    checkpoint_heavy,
    gpu_throttled,
    memory_full,
    prediction_missed,
    rate_too_low,
    many_rejects,
    dev_leak,
    plateau,
)


def find(facts: Facts) -> list[Finding]:
    """Everything that was found, worst first."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))
