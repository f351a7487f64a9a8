"""A curve that grows: few buckets whatever the length, made from one value at a time. Knows no run and no chart."""

import math
from dataclasses import dataclass

MAX_BUCKETS = 240


@dataclass(slots=True)
class _Bucket:
    last_x: float
    low: float
    high: float
    total: float
    count: int

    def add(self, x: float, low: float, high: float, total: float, count: int) -> None:
        self.last_x = max(self.last_x, x)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.total, self.count = self.total + total, self.count + count


Point = tuple[float, float, float, float]  # x of the last value, lowest, mean, highest


class Curve:
    """Values by x. When there are too many buckets, neighbours become one: all are equally wide at any time."""

    def __init__(self, width: float = 1.0, max_buckets: int = MAX_BUCKETS) -> None:
        self._width = width
        self._max_buckets = max_buckets
        self._buckets: dict[int, _Bucket] = {}

    def add(self, x: float, value: float) -> None:
        """Take in one value; one that is no number has no place on a chart."""
        if not math.isfinite(value):
            return
        self._put(x, value, value, value, 1)
        while len(self._buckets) > self._max_buckets:
            self._widen()

    def cut(self, x: float) -> None:
        """Forget what lies at x and beyond: it is being done again. A bucket across x goes whole."""
        self._buckets = {index: bucket for index, bucket in self._buckets.items() if bucket.last_x < x}

    def points(self) -> list[Point]:
        """In the order of x."""
        buckets = (self._buckets[index] for index in sorted(self._buckets))
        return [(bucket.last_x, bucket.low, bucket.total / bucket.count, bucket.high) for bucket in buckets]

    def _put(self, x: float, low: float, high: float, total: float, count: int) -> None:
        index = int(x // self._width)
        bucket = self._buckets.get(index)
        if bucket is None:
            self._buckets[index] = _Bucket(x, low, high, total, count)
        else:
            bucket.add(x, low, high, total, count)

    def _widen(self) -> None:
        buckets, self._buckets = self._buckets, {}
        self._width *= 2
        for bucket in buckets.values():
            self._put(bucket.last_x, bucket.low, bucket.high, bucket.total, bucket.count)
