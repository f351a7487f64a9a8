"""A batch as tensors on a device, for torch's own operations."""

from dataclasses import dataclass

import torch

from dragoman.data.batches import Batch
from dragoman.model.layout import Layout


@dataclass(frozen=True)
class BatchTensors:
    """Both sides and their layouts."""

    source_ids: torch.Tensor
    source: Layout
    input_ids: torch.Tensor
    labels: torch.Tensor
    target: Layout

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> "BatchTensors":
        source_ids, input_ids, labels = (
            torch.from_numpy(array).to(device) for array in (batch.source_ids, batch.input_ids, batch.target_ids)
        )
        source, target = Layout(batch.source_lengths, device), Layout(batch.target_lengths, device)
        return cls(source_ids, source, input_ids, labels, target)
