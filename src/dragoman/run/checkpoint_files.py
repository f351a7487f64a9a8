"""The files of a checkpoint folder and whether they are what was written. No torch: anybody may verify a run."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from dragoman.containment import is_inside
from dragoman.hashing import file_sha256

WEIGHTS, OPTIMIZER, STATE, RECIPE, VOCAB = (
    "weights.safetensors",
    "optimizer.safetensors",
    "state.json",
    "recipe.toml",
    "vocab.model",
)


def rank_file(rank: int) -> str:
    """What is one rank's own: error feedback, a replica's weights."""
    return f"rank-{rank:03d}.safetensors"


def temporary(final: Path, token: str) -> Path:
    """No reader ever meets half a checkpoint. By a token for every start, since a killed one may have left some."""
    return final.with_name(f".{final.name}.{token}.tmp")


def find_damage(path: Path) -> str | None:
    """What is wrong with a checkpoint folder, by the checksums in its state; None if it is whole."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        if state.pop("sha256") != state_digest(state):
            return f"{STATE} has other values than were written"
        for name, entry in state["files"].items():
            if not is_inside(path, name):
                return f"{STATE} names {name!r}, which is no file of a checkpoint"
            if not (path / name).is_file():
                return f"{name} is missing"
            if file_sha256(path / name) != entry["sha256"]:
                return f"{name} has other bytes than were written"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"{STATE} cannot be read: {error}"
    return None


def is_whole_file(path: Path, name: str) -> bool:
    """Whether this one file of a checkpoint folder is what was written, whatever happened to the others."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        is_read = state.pop("sha256") == state_digest(state)
        return is_read and is_inside(path, name) and file_sha256(path / name) == state["files"][name]["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def state_digest(state: Mapping[str, object]) -> str:
    """Checksum of the state's values; those of the other files are among them."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
