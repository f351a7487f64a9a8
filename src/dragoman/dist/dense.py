"""The exact sum of all gradients, sent while the backward pass still runs."""

import torch

from dragoman.dist.codec import FLOATS
from dragoman.dist.sync import GradientSync
from dragoman.dist.world import Pending, World
from dragoman.model.flat import FlatModel
from dragoman.plan.payload import Precision

BUCKET_BYTES = 25_000_000
# Gradients per token are small: without this, many would fall below what fp16 can tell from zero.
FP16_SCALE = 1_024.0


class DenseSync(GradientSync):
    """Sums buckets of the flat gradient from its end, which a backward pass finishes first."""

    def __init__(self, world: World, flat: FlatModel, precision: Precision = "fp32") -> None:
        super().__init__(world, flat)
        # fp64 exists for tests of exactness: it travels as it is.
        is_native = precision == "fp32" or flat.gradient.dtype == torch.float64
        self._dtype = flat.gradient.dtype if is_native else FLOATS[precision]
        self._scale = FP16_SCALE if self._dtype == torch.float16 else 1.0
        self._buckets, self._bucket_of = _cut(flat)
        self._missing: list[int] = []
        self._sums: list[Pending[torch.Tensor]] = []
        if not world.is_alone:
            flat.when_ready(self._note)

    def begin_last_backward(self) -> None:
        self._missing = [self._bucket_of.count(number) for number in range(len(self._buckets))]

    def _note(self, parameter: int) -> None:
        if not self._missing:
            return
        self._missing[self._bucket_of[parameter]] -= 1
        # Buckets leave in one order on every rank, whatever order autograd takes.
        while len(self._sums) < len(self._buckets) and self._missing[len(self._sums)] == 0:
            self._start_next()

    def _start_next(self) -> None:
        bucket = self._flat.gradient[self._buckets[len(self._sums)]]
        carried = bucket if bucket.dtype == self._dtype else (bucket * self._scale).to(self._dtype)
        self._sums.append(self._world.start_sum(carried))

    def exchange(self, own_tokens: int, all_tokens: int) -> None:
        while len(self._sums) < len(self._buckets):
            self._start_next()
        for part, pending in zip(self._buckets, self._sums, strict=True):
            total = pending.wait()
            if total.dtype != self._flat.gradient.dtype:
                self._flat.gradient[part] = total.to(self._flat.gradient.dtype) / self._scale
        self._missing, self._sums = [], []


def _cut(flat: FlatModel) -> tuple[list[slice], list[int]]:
    """Buckets of whole parameters, last parameters first; and which bucket each parameter is in."""
    size = flat.gradient.element_size()
    buckets: list[slice] = []
    bucket_of = [0] * len(flat.starts)
    end = flat.gradient.numel()
    for number in reversed(range(len(flat.starts))):
        bucket_of[number] = len(buckets)
        start = flat.starts[number]
        if (end - start) * size >= BUCKET_BYTES or number == 0:
            buckets.append(slice(start, end))
            end = start
    return buckets, bucket_of
