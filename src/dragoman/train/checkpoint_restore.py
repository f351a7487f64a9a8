"""Going on from a checkpoint: the newest that counts, from this host's disk or from a peer's copy of it."""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import torch
from pydantic import TypeAdapter, ValidationError

from dragoman.dist.sync import Sync
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.model.weights import load_tensors, load_weights
from dragoman.run.checkpoint_files import OPTIMIZER, STATE, WEIGHTS, find_damage, is_whole_file, rank_file
from dragoman.run.folder import RunFolder
from dragoman.train.optim import Optimizer
from dragoman.train.progress import Progress
from dragoman.units import format_bytes, format_seconds

MISSING, FOREIGN = "missing", "another attempt's"
PREFIX = "optimizer."  # of a replica's averages in its rank's file


@dataclass(frozen=True)
class Copy:
    """A checkpoint as one rank finds it on its disk."""

    host: str
    problem: str | None  # MISSING, or what is damaged
    weights_sha256: str = ""
    last: int | None = None  # the newest checkpoint that counts there


class Restorer:
    """Brings one rank's tensors to where a checkpoint left them. All ranks call its methods together."""

    def __init__(
        self, folder: RunFolder, world: World, model: torch.nn.Module, optimizer: Optimizer, sync: Sync
    ) -> None:
        self._folder = folder
        self._world = world
        self._model = model
        self._optimizer = optimizer
        self._sync = sync
        self.hosts_lacking: set[str] = set()  # that what was restored last, and took the copy of a peer

    def restore(self, before: float = math.inf) -> tuple[Progress | None, list[str]]:
        """Go on from the newest checkpoint of an earlier step that counts and is whole on some disk; None without one.
        Notes say what was passed over, and who took whose copy."""
        notes: list[str] = []
        for step in self._counting_steps():
            if step >= before:
                continue
            path = self._folder.step_checkpoint(step)
            told = self._world.gather(asdict(_look(path, self._world.host, self._folder.pointed_step("last"))))
            source, copies = _choose([Copy(**entry) for entry in told])
            notes += _passed_over(path.name, copies, source)
            if source is not None:
                self.hosts_lacking = {copy.host for copy in copies if copy.problem is not None}
                return self._restore(path, copies, source, notes)
        return None, notes

    def _counting_steps(self) -> list[int]:
        """Newest first. What lies behind every `last` was not written on all hosts: it may mix with another attempt."""
        told = self._world.gather([self._folder.pointed_step("last"), self._folder.step_checkpoints()])
        newest = max((last for last, _ in told if last is not None), default=math.inf)
        return sorted({step for _, steps in told for step in steps if step <= newest}, reverse=True)

    def _restore(self, path: Path, copies: Sequence[Copy], source: int, notes: list[str]) -> tuple[Progress, list[str]]:
        is_here = copies[self._world.rank].problem is None
        progress, hosts = self._world.gather(_read_state(path) if is_here else None)[source]
        if is_here:
            load_weights(self._model, path / WEIGHTS)
        began, num_bytes = time.monotonic(), 0
        if self._world.any(not is_here):
            for tensor in self._model.state_dict().values():
                num_bytes += tensor.nbytes
                self._world.broadcast(tensor, source)
        own_path = _own_file(path, self._world, hosts)
        is_own = copies[self._world.rank].problem not in (MISSING, FOREIGN) and own_path is not None
        own = load_tensors(own_path) if own_path and is_own and is_whole_file(path, own_path.name) else {}
        fresh, num_own_bytes = self._restore_own(path, own, is_here, source)
        told = self._world.gather([fresh, num_bytes + num_own_bytes])
        notes += [note for note, _ in told if note]
        if num_bytes:
            seconds = format_seconds(time.monotonic() - began)
            size = format_bytes(max(size for _, size in told))
            notes.append(f"{size} were copied from {copies[source].host} in {seconds}")
        return Progress(**progress), notes

    def _restore_own(self, path: Path, own: dict[str, torch.Tensor], is_here: bool, source: int) -> tuple[str, int]:
        """Optimizer and exchange: from what is this rank's own, the shared file, or, where both are gone, the source's.
        What there is to say about it, and the bytes that came from the source."""
        shared_path = path / OPTIMIZER
        averages = {name.removeprefix(PREFIX): own.pop(name) for name in list(own) if name.startswith(PREFIX)}
        num_bytes = 0
        if is_here and shared_path.exists():
            averages = load_tensors(shared_path)
        elif not self._sync.has_replicas and self._world.rank != source:
            averages = {}  # replicas of an earlier attempt: from now on all go by one
        if self._world.any(not averages):
            firsts = averages or self._optimizer.tensors()
            # A file may have a loss scale that a rank does without, or lack one: what everybody has, in one order.
            names = set(firsts).intersection(*self._world.gather(list(firsts)))
            firsts = {
                name: self._world.broadcast(firsts[name].to(self._world.device).clone(), source)
                for name in sorted(names)
            }
            num_bytes = sum(tensor.nbytes for tensor in firsts.values())
            averages = averages or firsts
        self._optimizer.load(averages)
        expected = self._sync.state().keys() if not own else ()
        common = self._common_state(own)
        self._sync.load_state(own or common)
        note = f"rank {self._world.rank} has no state of its own in {path.name}: its exchange starts anew"
        return note if expected else "", num_bytes

    def _common_state(self, own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What all ranks have alike of their exchange, from one that has it. All ranks call this together."""
        names = [name for name in own if self._sync.is_common(name)]
        told = self._world.gather([[name, list(own[name].shape), str(own[name].dtype)] for name in names])
        owner = next((rank for rank, entries in enumerate(told) if entries), None)
        if owner is None:
            return {}
        common: dict[str, torch.Tensor] = {}
        for name, shape, dtype in told[owner]:
            tensor = own[name] if self._world.rank == owner else torch.empty(shape, dtype=_dtype(dtype))
            common[name] = self._world.broadcast(tensor.to(self._world.device).clone(), owner)
        return common


def _dtype(name: str) -> torch.dtype:
    """'torch.float32' -> the type."""
    return getattr(torch, name.removeprefix("torch."))


def _look(path: Path, host: str, last: int | None) -> Copy:
    problem = find_damage(path) if path.exists() else MISSING
    if problem is not None:
        return Copy(host, problem, last=last)
    state = json.loads((path / STATE).read_text(encoding="utf-8"))
    return Copy(host, None, state["files"].get(WEIGHTS, {}).get("sha256", ""), last)


def _choose(copies: Sequence[Copy]) -> tuple[int | None, list[Copy]]:
    """The rank whose copy everybody goes by, and what is wrong with the others'. Hosts that trained apart for a while
    may have other weights under the same name: those count where the run came furthest."""
    whole = [rank for rank, copy in enumerate(copies) if copy.problem is None]
    source = max(whole, key=lambda rank: (copies[rank].last or 0, -rank), default=None)
    if source is None:
        return None, list(copies)
    wanted = copies[source].weights_sha256
    return source, [
        replace(copy, problem=FOREIGN) if copy.problem is None and copy.weights_sha256 != wanted else copy
        for copy in copies
    ]


def _own_file(path: Path, world: World, hosts: Sequence[str] | None) -> Path | None:
    """What this rank had: by its host and its place there, for ranks are counted anew when hosts come and go."""
    if hosts is None or (world.host not in hosts and len(hosts) == world.size):
        return path / rank_file(world.rank)  # of an earlier version; or the machine has another name today
    numbers = [rank for rank, host in enumerate(hosts) if host == world.host]
    return path / rank_file(numbers[world.local_rank]) if world.local_rank < len(numbers) else None


def _passed_over(name: str, copies: Sequence[Copy], source: int | None) -> list[str]:
    """One note per host whose copy is not used."""
    instead = "using the one before" if source is None else f"taking the copy of {copies[source].host}"
    has_peers = len({copy.host for copy in copies}) > 1
    notes = []
    for host, problem in {copy.host: copy.problem for copy in copies if copy.problem is not None}.items():
        state = problem if problem in (MISSING, FOREIGN) else "damaged"
        where = f" on {host}" if has_peers else ""
        why = "" if problem in (MISSING, FOREIGN) else f" ({problem})"
        notes.append(f"checkpoint {name} is {state}{where}{why}: {instead}")
    return notes


def _read_state(path: Path) -> tuple[dict[str, object], list[str] | None]:
    """How far the run had come, and the hosts of its ranks."""
    hosts = json.loads((path / STATE).read_text(encoding="utf-8")).get("hosts")
    is_known = isinstance(hosts, list) and all(isinstance(host, str) for host in cast("list[object]", hosts))
    return read_progress(path), hosts if is_known else None


def read_progress(path: Path) -> dict[str, object]:
    """Of a whole checkpoint, whose state may still have been written by a stranger."""
    try:
        return asdict(TypeAdapter(Progress).validate_json((path / STATE).read_bytes()))
    except (OSError, ValidationError):
        raise DragomanError(f"{path / STATE} does not say how far the run came", "remove that checkpoint") from None
