"""A GPU's memory: what training may take of it, and one line for the user where it did not suffice."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from dragoman.config import CutBatch
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.run.control import OUT_OF_MEMORY
from dragoman.units import format_bytes

# Not only torch takes memory: code of kernels, cuBLAS and NCCL do, each with an error of its own.
COMPLAINTS = ("out of memory", "ALLOC_FAILED")


def free_gpu_bytes(world: World) -> int | None:
    """What the poorest rank has of a GPU for training, model included; None without GPUs. A call of all ranks."""
    return poorest_share(world.gather(_own_memory(world.device)))


def _own_memory(device: torch.device) -> dict[str, Any] | None:
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    gpu = str(torch.cuda.get_device_properties(device).uuid)  # a number would not do: some launchers call each one 0
    return {"gpu": gpu, "free": free, "taken": torch.cuda.memory_reserved(device)}


def poorest_share(told: Sequence[dict[str, Any] | None]) -> int | None:
    """From every rank's word: ranks that share a GPU share what is free of it and what they have taken already."""
    gpus: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for own in told:
        if own is not None:
            gpus[own["gpu"]].append(own)
    shares = [
        (min(own["free"] for own in ranks) + sum(own["taken"] for own in ranks)) // len(ranks)
        for ranks in gpus.values()
    ]
    return min(shares, default=None)


class OutOfMemoryError(DragomanError):
    """Of a rank, in the middle of training: another process may have taken what it needs for a while."""

    exit_code = OUT_OF_MEMORY


@contextmanager
def naming_batch(batch: CutBatch, world: World) -> Generator[None]:
    """Out of memory in here is the user's to mend: which batch it was, and the setting that makes it smaller."""
    try:
        yield
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            raise
        number, tokens = batch.num_microbatches, batch.target_tokens // batch.num_microbatches
        raise OutOfMemoryError(
            f"{world.name} is out of GPU memory with microbatches of {tokens:,} target tokens "
            f"({number} a step){_memory_text(world.device)}",
            f"--set batch.num_microbatches={2 * number} halves them and leaves the update as it is"
            if tokens // 2 > batch.max_pieces
            else "they cannot be smaller and hold a sentence of batch.max_pieces: take a smaller recipe",
        ) from error


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Or came of it: a recording of kernels that breaks off has an error of its own on top."""
    while error is not None:
        if any(words in str(error) for words in COMPLAINTS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _memory_text(device: torch.device) -> str:
    """Of the whole GPU: others may have taken what is missing."""
    if device.type != "cuda":
        return ""
    free, total = torch.cuda.mem_get_info(device)
    return f"; {format_bytes(free)} of {format_bytes(total)} are free"
