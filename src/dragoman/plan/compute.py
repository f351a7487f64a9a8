"""How long a step computes: a measured profile fitted to the recipe, or an estimate from FLOPs and a table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoman.config import CutRecipe, Recipe, SyncConfig
from dragoman.model.size import size_of
from dragoman.plan.gpus import FP32_EFFICIENCY, Gpu
from dragoman.plan.machines import Machines
from dragoman.plan.traffic import method_name
from dragoman.run.promise import ComputeProfile

# A core of an AVX-512 server trains at 64 GFLOP/s; an older or shared one at half of it.
CORE_FLOPS = (30e9, 80e9)
CPU_MEMORY_RATE = 20e9
MEMORY_SHARE = 0.5  # of a data sheet's memory bandwidth
# Even an empty kernel takes its time to start: of a layer's forward pass on a GPU.
LAYER_SECONDS = 0.00015
OPTIMIZER_PASSES = 10  # over the fp32 parameters: gradient, norm, both averages and weights read and written
# The arithmetic of an exchange that nobody timed, as such passes over what it encodes.
METHOD_PASSES = {"dense fp32": 0, "dense": 4, "int8": 60, "powersgd": 20, "diloco": 30}
PCIE_RATE, NVLINK_RATE = 10e9, 150e9  # bytes a second between the GPUs of a host


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate and its bounds; all three alike where it was measured."""

    middle: ComputeProfile
    fastest: ComputeProfile
    slowest: ComputeProfile


def estimate(recipe: CutRecipe, vocab_size: int, machines: Machines) -> Range:
    """Compute of a step on machines that nobody has measured."""
    precision = expected_precision(recipe, machines.gpu)
    slow, fast = _rates(machines, precision)
    low, high, middle = (
        _at_rate(recipe, vocab_size, machines, precision, rate) for rate in (fast, slow, (slow + fast) / 2)
    )
    return Range(middle, low, high)


def expected_precision(recipe: Recipe, gpu: Gpu | None) -> str:
    """`auto` is bf16 where the card has it, fp16 on an older one, and fp32 on a CPU."""
    if recipe.train.precision != "auto":
        return recipe.train.precision
    if gpu is None:
        return "fp32"
    return "bf16" if gpu.has_bf16 else "fp16"


def _rates(machines: Machines, precision: str) -> tuple[float, float]:
    """Model FLOPs a second of a rank, slowest and fastest."""
    if machines.gpu is None:
        slow, fast = (machines.num_cores * rate for rate in CORE_FLOPS)
        return slow, fast
    gpu = machines.gpu
    is_half = precision in ("bf16", "fp16")
    peak = gpu.half_flops if is_half else gpu.fp32_flops
    low, high = gpu.half_efficiency if is_half else FP32_EFFICIENCY
    return peak * low, peak * high


def _at_rate(recipe: CutRecipe, vocab_size: int, machines: Machines, precision: str, flops: float) -> ComputeProfile:
    size = size_of(recipe.model, vocab_size)
    tokens = recipe.batch.target_tokens / recipe.batch.num_microbatches
    output = vocab_size * recipe.model.d_model
    layers = size.matrix_parameters - output
    least = 0.0 if machines.gpu is None else _least_seconds(recipe)
    # The loss makes its own gradient: all of the output projection's work is in the forward pass.
    forward = max(2 * tokens * (layers + 3 * output) / flops, least)
    backward = max(4 * tokens * layers / flops, 2 * least)
    memory_rate = MEMORY_SHARE * (machines.gpu.memory_bytes_per_second if machines.gpu else CPU_MEMORY_RATE)
    one_pass = size.gradient_bytes / memory_rate
    local = machines.ranks_per_host
    local_rate = NVLINK_RATE if machines.gpu is not None and machines.gpu.has_nvlink else PCIE_RATE
    return ComputeProfile(
        recipe_hash="",
        device="cpu" if machines.gpu is None else machines.gpu.name,
        precision=precision,
        num_parameters=size.num_parameters,
        num_microbatches=recipe.batch.num_microbatches,
        forward_seconds=forward,
        backward_seconds=backward,
        optimizer_seconds=OPTIMIZER_PASSES * one_pass,
        num_local_ranks=local,
        local_sum_seconds=2 * (local - 1) / local * size.gradient_bytes / local_rate,
        target_tokens=recipe.batch.target_tokens,
    )


def _least_seconds(recipe: Recipe) -> float:
    """Of a forward pass on a GPU, however little text it has."""
    return (recipe.model.num_encoder_layers + recipe.model.num_decoder_layers) * LAYER_SECONDS


def fitted(profile: ComputeProfile, recipe: CutRecipe, vocab_size: int) -> tuple[ComputeProfile, bool]:
    """A profile for this recipe, and whether it was measured with these sizes; else scaled by size and tokens."""
    size = size_of(recipe.model, vocab_size)
    batch = recipe.batch
    measured_tokens = (profile.target_tokens or batch.target_tokens) / profile.num_microbatches
    tokens = batch.target_tokens / batch.num_microbatches
    by_size = size.num_parameters / profile.num_parameters
    by_tokens = tokens / measured_tokens
    if by_size == 1 and abs(by_tokens - 1) < 0.02:
        return replace(profile, num_microbatches=batch.num_microbatches), True
    # Small pieces come down to a GPU's least time, which is that of the profile where it was faster still.
    least = 0.0 if profile.device == "cpu" else _least_seconds(recipe)
    scaled = replace(
        profile,
        num_parameters=size.num_parameters,
        num_microbatches=batch.num_microbatches,
        forward_seconds=max(profile.forward_seconds * by_size * by_tokens, min(least, profile.forward_seconds)),
        backward_seconds=max(profile.backward_seconds * by_size * by_tokens, min(2 * least, profile.backward_seconds)),
        optimizer_seconds=profile.optimizer_seconds * by_size,
        local_sum_seconds=profile.local_sum_seconds * by_size,
        method_seconds={name: seconds * by_size for name, seconds in profile.method_seconds.items()},
        target_tokens=batch.target_tokens,
    )
    return scaled, False


def method_seconds(profile: ComputeProfile, sync: SyncConfig) -> float:
    """Arithmetic of an exchange: timed for this very method or its kind (`diloco sign every 4`, `diloco`), or guessed
    from the optimizer, which also goes over all parameters."""
    name = method_name(sync)
    timed = _nearest(profile.method_seconds, name)
    if timed is not None:
        return timed
    passes = (_nearest(METHOD_PASSES, name) or 0) / (sync.every_steps if sync.method == "diloco" else 1)
    return passes / OPTIMIZER_PASSES * profile.optimizer_seconds


def _nearest(table: Mapping[str, float], name: str) -> float | None:
    """The entry of the longest name that begins this one, word by word."""
    words = name.split()
    found = (table.get(" ".join(words[:count])) for count in range(len(words), 0, -1))
    return next((value for value in found if value is not None), None)
