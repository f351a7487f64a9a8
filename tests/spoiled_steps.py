"""Losses that are no numbers, in chosen steps of a run: its gradients stay what they are."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dragoman.train import loop
from dragoman.train.passes import TorchPasses

FactorOf = Callable[[int, int], float]


def spoil(monkeypatch: pytest.MonkeyPatch, factor_of: FactorOf) -> None:
    """`factor_of(step, visit)` multiplies the losses of a step, which a run may visit several times, from 1 on."""
    visits: Counter[int] = Counter()
    now: dict[str, int] = {"step": 0, "piece": 0}
    seed_of, forward = loop.dropout_seed, TorchPasses.forward

    def noted(seed: int, step: int, microbatch: int) -> int:
        if step != now["step"] or microbatch <= now["piece"]:
            visits[step] += 1
        now.update(step=step, piece=microbatch)
        return seed_of(seed, step, microbatch)

    def spoiled(self: TorchPasses, piece: Any, seed: int, num_tokens: int) -> torch.Tensor:
        sums = forward(self, piece, seed, num_tokens)
        return sums * factor_of(now["step"], visits[now["step"]]) if now["step"] else sums

    monkeypatch.setattr(loop, "dropout_seed", noted)
    monkeypatch.setattr(TorchPasses, "forward", spoiled)
