"""What would have made a step shorter, with the predicted step time: another exchange, a faster link, one machine."""

from dataclasses import dataclass

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.link import step_seconds_at
from dragoman.diagnose.statistics import finite_mean
from dragoman.diagnose.wording import money, seconds_text, times_text
from dragoman.plan.exchange import Facts as ExchangeFacts
from dragoman.plan.exchange import choose
from dragoman.units import format_seconds

WORTH_IT = 0.9  # of today's step time: what saves less is not worth a sentence


@dataclass(frozen=True)
class Remedy:
    """One thing to do and the step it would give."""

    action: str  # an imperative
    step_seconds: float


def exchange_remedy(facts: Facts) -> Remedy | None:
    """The least lossy exchange that this link carries, where it is another than the one used."""
    link, split, grid = facts.link, facts.split, facts.grid
    if link is None or split is None or grid is None or not link.capacity or not facts.run.manifest.num_parameters:
        return None
    measured = facts.run.profile.link if facts.run.profile else None
    backward = finite_mean(grid.parts["backward"][grid.is_steady]) or 0.0
    choice = choose(
        ExchangeFacts(
            num_parameters=facts.run.manifest.num_parameters,
            num_hosts=link.num_hosts,
            num_ranks=max(link.num_ranks, link.num_hosts),
            compute_seconds=max(split.compute_seconds, 1e-9),
            overlap_seconds=backward,
            bytes_per_second=link.capacity,
            latency_seconds=measured.latency_seconds if measured else 0.001,
        )
    )
    if choice.option.name == link.method:
        return None
    option = choice.option
    action = f"exchange with sync.method = {option.method}, sync.precision = {option.precision}"
    if option.method == "diloco":
        action += f", sync.every_steps = {option.every_steps}"
    rest = split.step_seconds - split.transfer_seconds
    return _worthwhile(facts, Remedy(action, rest + choice.waiting_seconds))


def link_remedy(facts: Facts) -> Remedy | None:
    """The smallest of the usual steps up in link speed that does most of what any could."""
    if facts.link is None or facts.split is None:
        return None
    double, tenfold = (step_seconds_at(facts.link, facts.split, factor) for factor in (2, 10))
    is_double_enough = double - tenfold < 0.2 * (facts.split.step_seconds - tenfold)
    chosen = Remedy("use a link twice as fast", double) if is_double_enough else Remedy(
        "use a link ten times as fast", tenfold
    )  # fmt: skip
    return _worthwhile(facts, chosen)


def single_host_seconds(facts: Facts) -> float | None:
    """The same step on one of the hosts alone: measured before the run, at the pace at which the run then computed."""
    before = _single_host_before(facts) if facts.num_hosts > 1 else None
    return None if before is None else before * _pace(facts)


def _single_host_before(facts: Facts) -> float | None:
    if facts.run.prediction is not None and facts.run.prediction.single_host_step_seconds:
        return facts.run.prediction.single_host_step_seconds
    compute = facts.run.profile.compute if facts.run.profile else None
    if compute is None or compute.num_local_ranks < 1:
        return None
    pieces = -(-compute.num_microbatches // compute.num_local_ranks)
    computing = pieces * (compute.forward_seconds + compute.backward_seconds)
    total = computing + compute.optimizer_seconds + compute.local_sum_seconds
    return total if total > 0 else None


def _pace(facts: Facts) -> float:
    """Computing as it was over computing as it was measured before: a short measurement may meet a busy machine."""
    compute = facts.run.profile.compute if facts.run.profile else None
    num_ranks = facts.run.manifest.world_size
    if compute is None or facts.split is None or num_ranks < 1:
        return 1.0
    pieces = compute.num_microbatches / num_ranks
    expected = pieces * (compute.forward_seconds + compute.backward_seconds)
    return facts.split.compute_seconds / expected if expected > 0 and facts.split.compute_seconds > 0 else 1.0


def effect_of(facts: Facts, remedy: Remedy) -> str:
    """'0.31 s a step instead of 1.7 s, 5.5 times the speed'."""
    now = facts.split.step_seconds if facts.split is not None else facts.mean_step_seconds or 0.0
    faster = times_text(now / remedy.step_seconds) if remedy.step_seconds > 0 else ""
    return f"{seconds_text(remedy.step_seconds)} a step instead of {seconds_text(now)}, {faster} the speed"


def worth_of(facts: Facts, saved_seconds: float) -> str:
    """Hours, and money where a price is known."""
    text = format_seconds(saved_seconds)
    if facts.price_per_second:
        text += f" and {money(facts.price_per_second * saved_seconds, facts.currency)}"
    return text


def _worthwhile(facts: Facts, remedy: Remedy) -> Remedy | None:
    now = facts.split.step_seconds if facts.split is not None else 0.0
    return remedy if remedy.step_seconds < WORTH_IT * now else None
