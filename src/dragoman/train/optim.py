"""Adam over a model's flat vectors (with Muon for its matrices, if wanted), and its averages as tensors for a file.

What torch.optim does, without its import of a compiler (a second of every start) and without a wait for the device:
whether a gradient is finite is seen and obeyed where it lies.
"""

from typing import Any

import torch

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.train.muon import MOMENTUM, Muon, is_matrix
from dragoman.train.scale import LossScale

STEP, FIRST, SECOND = "step", "exp_avg", "exp_avg_sq"  # names of torch.optim's state, which a file keeps


class Optimizer:
    """Adam or AdamW, or Muon for matrices and AdamW for the rest. Matrices decay, norms and biases do not.

    `rounded`, where there is one, follows the weights; by `scale`, where there is one, gradients come multiplied.
    """

    def __init__(
        self,
        flat: FlatModel,
        config: OptimConfig,
        rounded: torch.Tensor | None = None,
        scale: LossScale | None = None,
    ) -> None:
        self._flat = flat
        self._config = config
        self._rounded = rounded
        self._scale = scale
        self._num_updates = torch.zeros((), dtype=torch.float32, device=flat.weights.device)
        self._first = torch.zeros_like(flat.weights)
        self._second = torch.zeros_like(flat.weights)
        self._groups = self._decay_groups()
        self._muon = Muon(flat, self._first) if config.method == "muon" else None
        has_kinds = config.weight_decay > 0 or self._muon is not None
        self._kinds = self._kind_mask() if has_kinds and rounded is not None else None

    def update(self, rate: float) -> torch.Tensor:
        """Move the weights and zero the gradient; its norm before clipping. Nothing moves where that is not finite."""
        if self._scale is not None:
            self._flat.gradient.div_(self._scale.value)
        norm = torch.linalg.vector_norm(self._flat.gradient)
        if self._scale is not None:
            self._scale.note(norm)
        self._num_updates += torch.isfinite(norm)
        if self._rounded is not None:
            self._update_fused(norm, rate)
        else:
            self._update_by_torch(norm, rate)
        return norm

    def _update_fused(self, norm: torch.Tensor, rate: float) -> None:
        from dragoman.model.fused.adam import gather_momentum, update_weights

        assert self._rounded is not None
        directions = None
        if self._muon is not None:
            assert self._kinds is not None, "they say what is a matrix"
            directions = self._muon.directions
            gather_momentum(self._flat, self._first, directions, self._kinds, norm, self._config.max_norm, MOMENTUM)
            self._muon.orthogonalize()
        averages = (self._first, self._second)
        update_weights(
            self._flat, self._rounded, averages, directions, self._kinds, self._num_updates, norm, rate, self._config
        )

    def _update_by_torch(self, norm: torch.Tensor, rate: float) -> None:
        config = self._config
        if self._muon is not None:
            is_finite = torch.isfinite(norm)
            self._muon.gather(self._clip_factor(norm), is_finite)
            self._muon.orthogonalize()
            self._muon.move(rate, config.weight_decay, is_finite)
        if config.max_norm:
            self._flat.gradient.mul_(self._clip_factor(norm))
        update: Any = torch.ops.aten._fused_adam_ if config.method == "adam" else torch.ops.aten._fused_adamw_
        is_left_out = (~torch.isfinite(norm)).float()
        for decay, tensors in self._groups:
            update(
                *tensors,
                [],
                [self._num_updates] * len(tensors[0]),
                lr=rate,
                beta1=config.betas[0],
                beta2=config.betas[1],
                weight_decay=decay,
                eps=config.epsilon,
                amsgrad=False,
                maximize=False,
                found_inf=is_left_out,
            )
        self._flat.gradient.zero_()

    def _clip_factor(self, norm: torch.Tensor) -> torch.Tensor:
        limit = self._config.max_norm
        return torch.clamp(limit / (norm + 1e-6), max=1.0) if limit else torch.ones_like(norm)

    def _decay_groups(self) -> list[tuple[float, list[list[torch.Tensor]]]]:
        """Decay, and weights, gradients and both averages of the parameters that have it."""
        vectors = (self._flat.weights, self._flat.gradient, self._first, self._second)
        rows: list[tuple[torch.Tensor, ...]] = list(zip(*(self._flat.views(vector) for vector in vectors), strict=True))
        by_decay: dict[float, list[tuple[torch.Tensor, ...]]] = {self._config.weight_decay: [], 0.0: []}
        for name, row in zip(self._flat.names, rows, strict=True):
            if not self._is_others(name, row[0]):
                by_decay[self._config.weight_decay if row[0].dim() > 1 else 0.0].append(row)
        return [
            (decay, [list(column) for column in zip(*chosen, strict=True)])
            for decay, chosen in by_decay.items()
            if chosen
        ]

    def _kind_mask(self) -> torch.Tensor:
        """As the fused update wants to know it."""
        mask = torch.zeros(self._flat.weights.shape, dtype=torch.uint8, device=self._flat.weights.device)
        for name, view in zip(self._flat.names, self._flat.views(mask), strict=True):
            view.fill_(2 if self._is_others(name, view) else int(view.dim() > 1))
        return mask

    def _is_others(self, name: str, weights: torch.Tensor) -> bool:
        """Whether Muon moves it."""
        return self._config.method == "muon" and is_matrix(name, weights)

    def reset(self) -> None:
        """As it was before its first update."""
        for tensor in (self._num_updates, self._first, self._second):
            tensor.zero_()
        if self._scale is not None:
            self._scale.reset()

    def tensors(self) -> dict[str, torch.Tensor]:
        """The averages by parameter name, and the loss scale where there is one, ready for a file."""
        averages = zip(self._flat.names, self._flat.views(self._first), self._flat.views(self._second), strict=True)
        named = {
            f"{name}.{key}": value
            for name, first, second in averages
            for key, value in ((STEP, self._num_updates.clone()), (FIRST, first), (SECOND, second))
        }
        return named if self._scale is None else named | self._scale.tensors()

    def load(self, tensors: dict[str, Any]) -> None:
        """The reverse."""
        self._num_updates.copy_(tensors[f"{self._flat.names[0]}.{STEP}"])
        for key, vector in ((FIRST, self._first), (SECOND, self._second)):
            for name, view in zip(self._flat.names, self._flat.views(vector), strict=True):
                view.copy_(tensors[f"{name}.{key}"])
        if self._scale is not None:
            self._scale.load(tensors)
