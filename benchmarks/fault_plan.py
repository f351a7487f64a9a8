"""Which faults befall which runs: everything follows from one seed."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from fault_kinds import KINDS, Fault
from fault_live import Settings
from fault_settings import METHODS

FEWEST_FAULTS, MOST_FAULTS = 2, 5
# With more ranks on the same cores a step takes longer: a run without faults takes about twenty seconds.
MAX_STEPS = {2: 240, 3: 220, 4: 200, 6: 160}
EVERY_STEPS = (5, 10, 20, 40)
AT_START, HASTY = 0.15, 0.2  # shares of faults
FIRST_SHARE, LAST_SHARE = 0.1, 0.7  # of a run's steps, between which faults come


@dataclass(frozen=True)
class RunPlan:
    number: int
    settings: Settings
    faults: tuple[Fault, ...]

    def groups(self) -> list[list[Fault]]:
        """A fault with the hasty ones that follow it."""
        starts: list[int] = []
        for fault in self.faults:
            starts.append((starts[-1] if starts else 0) + (not fault.is_hasty))
        pairs = zip(starts, self.faults, strict=True)
        return [[fault for _, fault in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def plan_runs(seed: int, kinds: Sequence[str], host_counts: Sequence[int], num_faults: int) -> Generator[RunPlan]:
    """Runs until they have so many faults. More faults with the same seed are the same runs and some more."""
    random = Random(seed)
    bags = _bags(random, kinds), _bags(random, tuple(METHODS)), _bags(random, host_counts)
    number, left = 0, num_faults
    while left > 0:
        method, num_hosts = next(bags[1]), next(bags[2])
        num_workers = random.choice((1, 1, 2))
        max_steps = MAX_STEPS[num_hosts * num_workers]
        settings = Settings(method, num_hosts, num_workers, random.choice(EVERY_STEPS), max_steps)
        faults = _faults(random, settings, bags[0])
        yield RunPlan(number, settings, tuple(faults[:left]))
        number, left = number + 1, left - len(faults)


def _bags(random: Random, things: Sequence) -> Iterator:
    """Each thing once in random order, and again: so that none is left out for long."""
    while True:
        yield from random.sample(things, len(things))


def _faults(random: Random, settings: Settings, kinds: Iterator[str]) -> list[Fault]:
    number = random.randint(FEWEST_FAULTS, MOST_FAULTS)
    shares = sorted(random.uniform(FIRST_SHARE, LAST_SHARE) for _ in range(number))
    num_left = settings.num_hosts
    faults: list[Fault] = []
    for share in shares:
        kind = next(kinds)
        if KINDS[kind].loses_host and num_left == 1:
            continue  # somebody must be left to train
        num_left -= KINDS[kind].loses_host
        faults.append(_fault(random, settings, kind, share, bool(faults)))
    return faults


def _fault(random: Random, settings: Settings, kind: str, share: float, has_one_before: bool) -> Fault:
    needs_checkpoint = KINDS[kind].needs_checkpoint
    is_hasty = has_one_before and not needs_checkpoint and random.random() < HASTY
    is_at_start = not has_one_before and not needs_checkpoint and random.random() < AT_START
    at_step = round(share * settings.max_steps)
    if needs_checkpoint:
        at_step = max(at_step, 2 * settings.every_steps)
    return Fault(
        kind,
        at_step=0 if is_at_start or is_hasty else at_step,
        delay_seconds=round(random.uniform(0.5, 10.0 if is_at_start or is_hasty else 1.5), 2),
        host_number=random.randrange(6),
        worker_number=random.randrange(6),
        seconds=round(random.uniform(*KINDS[kind].seconds), 2),
        seed=random.randrange(1 << 30),
        is_hasty=is_hasty,
    )
