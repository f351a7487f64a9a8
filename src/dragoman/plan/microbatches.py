"""How many microbatches a step is cut into, where the recipe leaves it open: as few as memory lets it be. No torch.

Few large ones keep a GPU busy. Without GPUs it is one number for all, so that the number of workers changes nothing.
"""

from dragoman.config import CutBatch, CutRecipe, Recipe
from dragoman.errors import DragomanError
from dragoman.model.size import size_of
from dragoman.units import format_bytes

CPU_NUMBER = 8
# Of free memory: the rest is for what an estimate does not know, and for what the allocator cannot use.
SAFE_SHARE = 0.8
LIBRARY_BYTES = 256_000_000  # of kernels that libraries load and of graphs; 210 MB for base on an H200
MUON_BYTES = 10  # for a weight of a matrix: its direction, and what it is made from
MOST_TOKENS = 131_072  # of a microbatch: larger ones make no GPU faster
# Smaller ones leave a GPU idle by more than recomputing costs.
LEAST_TOKENS = 2_048
FEWER_RANKS = "give fewer workers, raise batch.target_tokens, or lower batch.max_pieces"


def choose_number(recipe: Recipe, vocab_size: int, num_ranks: int, free_bytes: int | None, value_bytes: int = 4) -> int:
    """The recipe's own number; where it says auto, the best for so many ranks.

    `free_bytes` is what the poorest GPU has for training, model included; None: no GPUs.
    """
    if recipe.batch.num_microbatches != "auto":
        return recipe.batch.num_microbatches
    check_room(recipe, num_ranks, num_ranks)
    if free_bytes is None:
        return max(num_ranks, min(CPU_NUMBER, most_number(recipe)))
    # Multiples of the ranks: in every step all wait for the one that has most.
    numbers = range(num_ranks, most_number(recipe) + 1, num_ranks)
    _check_memory(recipe, vocab_size, numbers[-1], num_ranks, free_bytes, value_bytes)
    for recomputes, least_tokens in _ways(recipe, num_ranks):
        for number in numbers:
            tokens = microbatch_tokens(recipe, number)
            needed = needed_bytes(recipe, vocab_size, number, value_bytes, recomputes)
            if least_tokens <= tokens <= MOST_TOKENS and needed <= safe_bytes(free_bytes):
                return number
    return numbers[-1]


def _ways(recipe: Recipe, num_ranks: int) -> list[tuple[bool, int]]:
    """Whether to recompute, and how small a microbatch may be, the best first."""
    if recipe.train.recompute != "auto":
        return [(recipe.train.recompute, 1)]
    largest = microbatch_tokens(recipe, num_ranks)
    return [(False, min(LEAST_TOKENS, largest)), (True, 1)]


def needs_recomputing(
    recipe: Recipe, vocab_size: int, number: int, free_bytes: int | None, value_bytes: int = 4
) -> bool:
    """As the recipe says; where it says auto, whether so many microbatches fit into memory only that way."""
    if recipe.train.recompute != "auto":
        return recipe.train.recompute
    return free_bytes is not None and needed_bytes(recipe, vocab_size, number, value_bytes) > safe_bytes(free_bytes)


def safe_bytes(free_bytes: int) -> float:
    """What an estimate may come to."""
    return SAFE_SHARE * (free_bytes - LIBRARY_BYTES)


def _check_memory(
    recipe: Recipe, vocab_size: int, most: int, num_ranks: int, free_bytes: int, value_bytes: int
) -> None:
    """What leaves less than the usual margin may still do; what is short by any count would only fail later."""
    size = size_of(recipe.model, vocab_size)
    recomputes = recipe.train.recompute is not False
    needed = needed_bytes(recipe, vocab_size, most, value_bytes, recomputes)
    if num_ranks > 1:
        needed = max(needed, size.measure_bytes(value_bytes))
    if needed > free_bytes - LIBRARY_BYTES:
        raise DragomanError(
            f"training takes about {format_bytes(needed + LIBRARY_BYTES)} of GPU memory, even with microbatches of "
            f"{microbatch_tokens(recipe, most):,} target tokens, and {format_bytes(free_bytes)} are free",
            "end what else uses the GPU (`nvidia-smi` lists it), or take a smaller recipe; "
            f"--set batch.num_microbatches={most} tries it all the same",
        )


def value_bytes_of(precision: str, is_fused: bool) -> int:
    """Of an activation. Mixed precision by torch's own operations keeps much of it in 4 bytes, and is counted so."""
    if precision == "fp64":
        return 8
    return 2 if precision == "bf16" and is_fused else 4


def number_for_ranks(known: int, num_ranks: int) -> int:
    """A number that was settled for fewer ranks, for these: the smallest multiple of it that leaves nobody idle."""
    return known * -(-num_ranks // known)


def most_number(recipe: Recipe) -> int:
    """Of microbatches that still hold the longest sentence."""
    return recipe.batch.target_tokens // (recipe.batch.max_pieces + 1)


def microbatch_tokens(recipe: Recipe, number: int) -> int:
    """Target tokens of the largest of so many."""
    return -(-recipe.batch.target_tokens // number)


def needed_bytes(recipe: Recipe, vocab_size: int, number: int, value_bytes: int, recomputes: bool | None = None) -> int:
    """Memory of a rank that trains on one of so many; by itself, recomputing only what the recipe says."""
    size = size_of(recipe.model, vocab_size)
    is_on = recipe.train.recompute is True if recomputes is None else recomputes
    muon_bytes = MUON_BYTES * size.matrix_parameters if recipe.optim.method == "muon" else 0
    return muon_bytes + size.train_bytes(
        microbatch_tokens(recipe, number), recipe.model, vocab_size, value_bytes, is_on
    )


def check_room(recipe: Recipe, number: int, num_ranks: int) -> None:
    """Refuse microbatches that are too small for the longest sentence."""
    if number > most_number(recipe):
        batch = recipe.batch
        raise DragomanError(
            f"a step of {batch.target_tokens:,} target tokens cut for {num_ranks} ranks makes microbatches of "
            f"{batch.target_tokens // number:,}, and a sentence may have {batch.max_pieces + 1}",
            FEWER_RANKS,
        )


def cut(recipe: Recipe, number: int) -> CutRecipe:
    """The recipe with that number in place of its own word."""
    batch = CutBatch.model_validate({**recipe.batch.model_dump(), "num_microbatches": number})
    return CutRecipe.model_validate({**dict(recipe), "batch": batch})
