"""From a recipe's `sync` section to the method it names."""

from dragoman.config import SyncConfig
from dragoman.dist.dense import DenseSync
from dragoman.dist.diloco import DilocoSync
from dragoman.dist.powersgd import PowerSgdSync
from dragoman.dist.quantized import Int8Sync
from dragoman.dist.sync import Sync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel


def make_sync(config: SyncConfig, world: World, flat: FlatModel) -> Sync:
    """The method, ready for its first step. All ranks call this together."""
    match config.method:
        case "dense":
            return DenseSync(world, flat, "fp32" if config.precision == "auto" else config.precision)
        case "int8":
            return Int8Sync(world, flat)
        case "powersgd":
            return PowerSgdSync(world, flat, config.matrix_rank, config.dense_steps)
        case "diloco":
            precision = "sign" if config.precision == "auto" else config.precision
            return DilocoSync(world, flat, config, precision)
        case "auto":
            raise AssertionError("auto is resolved before it gets here")
