"""The files of a checkpoint and their bytes, before one is written. No torch.

Tensor files are exact: safetensors is a header that names every tensor, and the values. `recipe.toml` is exact too;
`state.json` holds numbers of unknown length, and `vocab.model` is exact where a data folder has one.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import tomli_w

from dragoman.config import CheckpointConfig, Recipe
from dragoman.plan.setting import Setting
from dragoman.plan.shapes import Parameter, num_values
from dragoman.run.checkpoint_files import OPTIMIZER, RECIPE, STATE, VOCAB, WEIGHTS, rank_file

DTYPE_BYTES = {"F32": 4, "I64": 8}
STATE_BYTES, STATE_BYTES_PER_FILE = 310, 144
# Of a checkpoint that keeps half-precision weights beside fp32 copies, as mixed precision in 2019 did.
CLASSIC_BYTES = {"fp16 weights": 2, "fp32 copies": 4, "Adam's first average": 4, "Adam's second average": 4}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a file."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "F32"

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]


def safetensors_bytes(tensors: Iterable[Tensor]) -> int:
    """Size of a file: eight bytes, the header as compact JSON filled up to eight, the values; wide types first."""
    header: dict[str, dict[str, object]] = {}
    end = 0
    for tensor in sorted(tensors, key=lambda tensor: (-DTYPE_BYTES[tensor.dtype], tensor.name)):
        start, end = end, end + tensor.num_bytes
        header[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (start, end)}
    text = json.dumps(header, separators=(",", ":"))
    return 8 + -(-len(text) // 8) * 8 + end


def checkpoint_files(setting: Setting, step: int | None = None, written: Recipe | None = None) -> dict[str, int]:
    """Name -> bytes on the first host, of the checkpoint of a step (the first that is saved).

    `written` is the recipe as given, where something of the setting's was settled from auto.
    """
    recipe, parameters = setting.recipe, setting.parameters
    step = step or min(recipe.checkpoint.every_steps, setting.num_steps)
    weights = [Tensor(parameter.name, parameter.shape) for parameter in parameters]
    averages = optimizer_tensors(parameters, setting.compute.middle.precision)
    files = {WEIGHTS: safetensors_bytes(weights)}
    if recipe.sync.method != "diloco":
        files[OPTIMIZER] = safetensors_bytes(averages)
    own = own_tensors(setting, step)
    if own:
        own_bytes = safetensors_bytes(own)
        files |= {rank_file(rank): own_bytes for rank in range(setting.placement.ranks_per_host)}
    files[RECIPE] = len(tomli_w.dumps((written or recipe).model_dump(exclude_none=True)).encode())
    files[VOCAB] = setting.text.vocab_bytes
    files[STATE] = STATE_BYTES + STATE_BYTES_PER_FILE * len(files)
    return files


def optimizer_tensors(parameters: Sequence[Parameter], precision: str = "fp32") -> list[Tensor]:
    """Adam's two averages and its count of steps, of every parameter; in fp16 the loss scale too."""
    scale = [Tensor("loss_scale.value", ()), Tensor("loss_scale.num_good", (), "I64")] if precision == "fp16" else []
    shapes = [(parameter.name, parameter.shape) for parameter in parameters]
    averages = [
        Tensor(f"{name}.{key}", () if key == "step" else shape)
        for name, shape in shapes
        for key in ("step", "exp_avg", "exp_avg_sq")
    ]
    return averages + scale


def own_tensors(setting: Setting, step: int) -> list[Tensor]:
    """What a rank keeps of its own: error feedback, or a whole replica with the fragments under way."""
    sync, parameters = setting.recipe.sync, setting.parameters
    count = num_values(parameters)
    match sync.method:
        case "int8":
            return [Tensor("error", (count,))]
        case "powersgd":
            rank = sync.matrix_rank
            widths = [p.shape[1] for p in parameters if len(p.shape) == 2 and min(p.shape) > 2 * rank]
            factors = [Tensor(f"right.{number}", (width, rank)) for number, width in enumerate(widths)]
            return [Tensor("error", (count,)), Tensor("num_steps", (), "I64"), *factors]
        case "diloco":
            return _replica(setting, step, count)
        case _:
            return []


def _replica(setting: Setting, step: int, count: int) -> list[Tensor]:
    sync = setting.recipe.sync
    names = ["weights", "momentum"] if sync.outer_momentum else ["weights"]
    flights: list[Tensor] = []
    # The last step lands everything.
    under_way = range(max(1, step - sync.delay_steps + 1), step + 1) if step < setting.num_steps else ()
    for flight in under_way:
        turn = (flight - 1) % sync.every_steps
        length = count * (turn + 1) // sync.every_steps - count * turn // sync.every_steps
        flights += [Tensor(f"flight.{flight}.{kind}", (length,)) for kind in ("sent", "mean")]
    inner = optimizer_tensors(setting.parameters, setting.compute.middle.precision)
    averages = [Tensor(f"optimizer.{tensor.name}", tensor.shape, tensor.dtype) for tensor in inner]
    return [*(Tensor(name, (count,)) for name in names), *flights, *averages]


def classic_bytes(num_parameters: int) -> dict[str, int]:
    """The parts of the classic layout: 14 bytes a parameter."""
    return {part: width * num_parameters for part, width in CLASSIC_BYTES.items()}


def num_saves(setting: Setting, step_seconds: float) -> int:
    """By steps, and by the clock where steps are long."""
    config = setting.recipe.checkpoint
    every = min(config.every_steps, setting.recipe.evaluate.every_steps)
    if config.every_minutes and step_seconds > 0:
        every = min(every, max(1, math.ceil(config.every_minutes * 60 / step_seconds)))
    return math.ceil(setting.num_steps / every)


def most_kept(config: CheckpointConfig) -> int:
    """The newest, and the best two."""
    return max(config.keep_last, config.average_last) + 2


RECORD_BYTES = {"step": 330, "timing": 480, "sample": 900, "sentence": 500}


def disk_bytes(setting: Setting, files: dict[str, int], saves: int, num_evals: int, seconds: float) -> int:
    """On the first host at the end: checkpoints, the average of the last, and records."""
    kept = min(saves, most_kept(setting.recipe.checkpoint)) * sum(files.values())
    if setting.recipe.checkpoint.average_last:
        kept += files[WEIGHTS] + files[VOCAB]
    records = setting.num_steps * (RECORD_BYTES["step"] + RECORD_BYTES["timing"] * setting.placement.num_ranks)
    records += round(seconds) * RECORD_BYTES["sample"] * setting.placement.num_hosts
    return kept + records + num_evals * setting.text.num_dev_pairs * RECORD_BYTES["sentence"]
