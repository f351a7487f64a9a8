"""The statistics behind verdicts: paired bootstrap, a curve continued, a change point. Arrays in, numbers out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SEED = 20_191
NUM_RESAMPLES = 300
TAIL = 0.025  # on either side of a 95 % interval
EXPONENTS: list[float] = np.geomspace(0.1, 3.0, 30).tolist()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_above_zero(self) -> bool:
        return self.low > 0

    @property
    def is_below_zero(self) -> bool:
        return self.high < 0


@dataclass(frozen=True, slots=True)
class Break:
    """Where a series changes its level: `index` is the first of the later part."""

    index: int
    before: float  # medians
    after: float
    noise: float  # robust spread around them


def estimate_of(value: float, resampled: Floats) -> Estimate:
    low, high = np.quantile(resampled, [TAIL, 1 - TAIL])
    return Estimate(value, min(float(low), value), max(float(high), value))


def resample_counts(num_items: int) -> Floats:
    """How often each item is drawn: one row per resample, the same rows for every series of that length."""
    random = np.random.default_rng(SEED)
    return random.multinomial(num_items, np.full(num_items, 1 / num_items), size=NUM_RESAMPLES).astype(np.float64)


def paired_ratio_change(first_sums: Floats, last_sums: Floats, weights: Floats) -> Estimate | None:
    """Change of sum/weight from one measurement to another of the same items, with its bootstrap interval."""
    is_usable = np.isfinite(first_sums) & np.isfinite(last_sums) & (weights > 0)
    if int(is_usable.sum()) < 2:
        return None
    delta, weight = (last_sums - first_sums)[is_usable], weights[is_usable]
    counts = resample_counts(len(delta))
    return estimate_of(float(delta.sum() / weight.sum()), (counts @ delta) / (counts @ weight))


def fit_power_laws(steps: Floats, curves: Floats) -> tuple[Floats, Floats, Floats]:
    """Least squares of a + b x step^-c with a, b >= 0 for every row of `curves`: arrays of a, b, c.

    Steps are taken relative to the last one, so b is what the last step still lies above a."""
    best = np.full(len(curves), np.inf)
    found = np.zeros((3, len(curves)))
    for exponent in EXPONENTS:
        x: Floats = (steps / steps[-1]) ** -exponent
        centred: Floats = x - float(x.mean())
        slope: Floats = np.maximum(curves @ centred / max(float(centred @ centred), 1e-12), 0.0)
        level: Floats = np.asarray(curves.mean(1), dtype=np.float64) - slope * float(x.mean())
        through_zero: Floats = np.maximum(curves @ x / float(x @ x), 0.0)
        steep: Floats = np.where(level < 0, through_zero, slope)
        level = np.maximum(level, 0.0)
        error: Floats = np.square(curves - level[:, None] - steep[:, None] * x).sum(axis=1)
        is_better = error < best
        best = np.where(is_better, error, best)
        found = np.where(is_better, np.stack([level, steep, np.full(len(curves), exponent)]), found)
    return found[0], found[1], found[2]


def forecast_gain(steps: Floats, values: Floats, noise: float, factor: float = 1.5) -> Estimate | None:
    """How far a falling curve would fall on by `factor` times the steps, as a positive gain; None from under 4 points.

    The interval comes from refitting the curve with fresh noise of the size that its own residuals show."""
    is_late = steps >= steps[-1] / 4 if len(steps) else np.zeros(0, dtype=bool)
    x, y = (steps[is_late], values[is_late]) if int(is_late.sum()) >= 4 else (steps, values)
    if len(x) < 4:
        return None
    level, slope, exponent = (part[0] for part in fit_power_laws(x, y[None, :]))
    fitted = level + slope * (x / x[-1]) ** -exponent
    spread = max(float(np.sqrt(((y - fitted) ** 2).sum() / max(len(x) - 3, 1))), noise)
    draws = np.random.default_rng(SEED).normal(0, 1, (NUM_RESAMPLES, len(x)))
    _, slopes, exponents = fit_power_laws(x, fitted + spread * draws)
    gains = slopes * (1 - factor**-exponents)
    return estimate_of(float(slope * (1 - factor**-exponent)), gains)


def block_medians(values: Floats, num_blocks: int = 50, min_size: int = 10) -> tuple[Floats, NDArray[np.int64]]:
    """Medians of neighbouring values, and where each block begins; values that are none are passed over."""
    size = max(min_size, -(-len(values) // num_blocks))
    # A short rest at the end joins the block before it.
    starts = np.arange(0, max(len(values) - size // 2, 1), size, dtype=np.int64)
    medians: list[float] = []
    for number, start in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(values)
        block = values[start:stop]
        finite = block[np.isfinite(block)]
        medians.append(float(np.median(finite)) if len(finite) else float("nan"))
    return np.asarray(medians), starts


def robust_spread(values: Floats) -> float:
    """Standard deviation as the median distance from the median tells it: outliers do not count."""
    finite = values[np.isfinite(values)]
    return float(1.4826 * np.median(np.abs(finite - np.median(finite)))) if len(finite) else 0.0


def find_break(values: Floats, min_side: int = 20) -> Break | None:
    """The one split that explains most of a series; whether it means anything is the caller's question."""
    if len(values) < 2 * min_side or not np.all(np.isfinite(values)):
        return None
    low, high = np.quantile(values, [0.02, 0.98])
    clipped = np.clip(values, low, high)
    count = np.arange(1, len(values), dtype=np.float64)
    ahead = np.cumsum(clipped)[:-1]
    behind = clipped.sum() - ahead
    between = ahead**2 / count + behind**2 / (len(values) - count)
    index = int(np.argmax(between[min_side - 1 : len(values) - min_side])) + min_side
    before, after = values[:index], values[index:]
    noise = max(robust_spread(before), robust_spread(after))
    return Break(index, float(np.median(before)), float(np.median(after)), noise)


def finite_mean(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def finite_median(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None
