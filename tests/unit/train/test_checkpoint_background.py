"""Checkpoints are written while training goes on, and count once every host has them."""

import math
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoint_training import Training, save

from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.model.weights import load_tensors
from dragoman.run.checkpoint_files import WEIGHTS, find_damage, rank_file
from dragoman.train import checkpoint_write
from dragoman.train.checkpoint_keep import keep_checkpoints, make_room
from dragoman.train.progress import Progress
from thread_worlds import run_ranks

DILOCO = ("sync.method=diloco", "sync.every_steps=2", "sync.delay_steps=1")


class Gate:
    """Holds every write of tensors back until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, is_held: Callable[[Path], bool] = lambda _: True) -> None:
        self.opened = threading.Event()
        write = checkpoint_write.save_tensors

        def save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
            if is_held(path):
                assert self.opened.wait(20)
            write(tensors, path)

        monkeypatch.setattr(checkpoint_write, "save_tensors", save_tensors)


def on_own_disks(tmp_path: Path, body: Callable[[World, Training], object], size: int = 2) -> list[object]:
    """Every rank has a host of its own."""

    def work(world: World) -> object:
        world.host = f"host{world.rank}"
        path = tmp_path / world.host
        path.mkdir(exist_ok=True)
        return body(world, Training(path))

    return run_ranks(size, work)


def test_training_goes_on_and_what_is_written_is_the_moment_of_the_save(tmp_path, monkeypatch):
    training = Training(tmp_path)
    gate = Gate(monkeypatch)
    before = {name: tensor.clone() for name, tensor in training.model.state_dict().items()}
    checkpoints = training.checkpoints()
    checkpoints.begin(Progress(1))
    training.flat.weights.fill_(7)
    assert checkpoints.vote() == 0
    assert training.folder.pointed_step("last") is None
    gate.opened.set()
    assert checkpoints.finish().files
    assert all(tensor.equal(before[name]) for name, tensor in training.weights(1).items())


def test_the_next_save_waits_for_the_one_before_and_tells_of_it(tmp_path):
    training = Training(tmp_path)
    checkpoints = training.checkpoints()
    assert checkpoints.begin(Progress(1)) is None
    training.flat.weights.fill_(7)
    before = checkpoints.begin(Progress(2))
    assert before.step == 1 and before.files and not before.problem
    assert checkpoints.finish().step == 2
    assert checkpoints.finish() is None
    assert not training.weights(1)["0.weight"].equal(training.weights(2)["0.weight"])


def test_votes_say_when_all_have_written_and_late_ones_of_an_earlier_checkpoint_do_not(tmp_path):
    def body(world: World, training: Training) -> tuple[float, list[bool]]:
        checkpoints = training.checkpoints(world)
        assert not checkpoints.is_written([0.0, 6.0])
        save(checkpoints, Progress(3))
        checkpoints.begin(Progress(5))
        while not checkpoints.vote():
            pass
        vote = checkpoints.vote()
        said = [checkpoints.is_written([votes]) for votes in (0.0, 5.0, 6.0, 10.0, math.inf)]
        checkpoints.finish()
        return vote, said

    assert on_own_disks(tmp_path, body) == [(5.0, [False, False, False, True, True])] * 2


def test_a_checkpoint_that_one_host_could_not_write_counts_nowhere(tmp_path, monkeypatch):
    def fail_on_second(path: Path) -> bool:
        if "host1" in path.parts and "step-00000002" in path.parent.name:
            raise OSError(28, "No space left on device")
        return False

    Gate(monkeypatch, fail_on_second)

    def body(world: World, training: Training) -> tuple[float, str, int | None, int]:
        checkpoints = training.checkpoints(world)
        save(checkpoints, Progress(1))
        training.flat.weights.fill_(2)
        checkpoints.begin(Progress(2))
        while not checkpoints.vote():
            pass
        vote = checkpoints.vote()
        problem = checkpoints.finish().problem
        last = training.folder.pointed_step("last")
        restored, _ = training.checkpoints(world).restore()
        assert not list(training.folder.checkpoints_path.glob(".*.tmp"))
        return vote, problem.split(": ")[0], last, restored.step

    assert on_own_disks(tmp_path, body) == [(2.0, "host host1", 1, 1), (math.inf, "host host1", 1, 1)]


@pytest.mark.parametrize("failing", [0, 1])
def test_whoever_fails_on_a_shared_disk_nobody_waits_and_nothing_stays(tmp_path, monkeypatch, failing):
    def fail(path: Path) -> bool:
        if path.name == f".{rank_file(failing)}":
            raise OSError(28, "No space left on device")
        return False

    Gate(monkeypatch, fail)

    def body(world: World) -> str:
        training = Training(tmp_path, name=f"{world.rank}.model")
        return save(training.checkpoints(world, *DILOCO), Progress(1)).problem

    first, second = run_ranks(2, body)
    assert first == second != ""
    assert not (tmp_path / "run/checkpoints/step-00000001").exists()
    assert not list((tmp_path / "run/checkpoints").iterdir())


def test_a_rank_with_nothing_to_write_leaves_nothing_behind(tmp_path):
    """It may come late, when the folder has its final name already."""

    def body(world: World) -> list[str]:
        training = Training(tmp_path, name=f"{world.rank}.model")
        checkpoints = training.checkpoints(world)
        for step in range(1, 30):
            save(checkpoints, Progress(step))
        return [path.name for path in training.folder.checkpoints_path.glob(".*")]

    assert run_ranks(2, body) == [[], []]
    checkpoint_write.write_part(checkpoint_write.Snapshot({}, None), tmp_path / "late")
    assert not (tmp_path / "late").exists()


def test_a_checkpoint_ahead_is_neither_counted_nor_removed(tmp_path):
    training = Training(tmp_path)
    training.save(1, 2, 9)
    keep_checkpoints(training.folder, 2, Progress(2))
    assert training.folder.step_checkpoints() == [1, 2, 9]


def test_ranks_that_share_a_disk_put_their_files_into_one_folder(tmp_path):
    def body(world: World) -> dict[str, int]:
        training = Training(tmp_path, name=f"{world.rank}.model")
        training.flat.weights.fill_(world.rank)
        return save(training.checkpoints(world, *DILOCO), Progress(1)).files

    first, second = run_ranks(2, body)
    assert {rank_file(0), rank_file(1), WEIGHTS} <= set(first)
    assert second == {}
    path = tmp_path / "run/checkpoints/step-00000001"
    assert find_damage(path) is None
    assert [float(load_tensors(path / rank_file(rank))["weights"][0]) for rank in (0, 1)] == [0, 1]


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_damaged_copy_is_replaced_by_that_of_a_peer(tmp_path, damaged):
    def body(world: World, training: Training) -> tuple[int, bool, list[str]]:
        training.flat.weights.fill_(5)
        save(training.checkpoints(world), Progress(1))
        training.flat.weights.fill_(6)
        save(training.checkpoints(world), Progress(2))
        if world.rank == damaged:
            (training.folder.step_checkpoint(2) / WEIGHTS).write_bytes(b"")
        training.flat.weights.fill_(0)
        progress, notes = training.checkpoints(world).restore()
        return progress.step, bool((training.flat.weights == 6).all()), notes

    note = (
        f"checkpoint step-00000002 is damaged on host{damaged} (weights.safetensors has other bytes than were written)"
    )
    for step, is_whole, notes in on_own_disks(tmp_path, body):
        assert (step, is_whole) == (2, True)
        assert notes[0] == f"{note}: taking the copy of host{1 - damaged}"
        assert notes[1].startswith(f"304 B were copied from host{1 - damaged} in ")


def test_a_host_without_any_takes_the_copy_of_another(tmp_path):
    def body(world: World, training: Training) -> tuple[int, float, str]:
        training.flat.weights.fill_(5)
        save(training.checkpoints(world), Progress(1))
        if world.is_first:
            shutil.rmtree(training.folder.checkpoints_path)
        training.flat.weights.fill_(0)
        progress, notes = training.checkpoints(world).restore()
        return progress.step, float(training.flat.weights[0]), notes[0]

    assert (
        on_own_disks(tmp_path, body)
        == [(1, 5.0, "checkpoint step-00000001 is missing on host0: taking the copy of host1")] * 2
    )


def test_the_budget_lets_the_oldest_go_first_and_never_the_last_or_the_best(tmp_path):
    training = Training(tmp_path)
    training.save(1, 2, 3, 4)
    size = bytes_of(training, 1)
    training.folder.set_pointer("best-loss", 1)
    make_room(training.folder, size, 4.5 * size)
    assert training.folder.step_checkpoints() == [1, 3, 4]
    make_room(training.folder, size, 1.5 * size)
    assert training.folder.step_checkpoints() == [1, 4]


def bytes_of(training: Training, step: int) -> int:
    return sum(file.stat().st_size for file in training.folder.step_checkpoint(step).iterdir())


def test_what_cannot_fit_is_not_begun(tmp_path):
    training = Training(tmp_path)
    training.save(1)
    with pytest.raises(DragomanError, match="No space left"):
        make_room(training.folder, 10**18, math.inf)


def test_a_run_keeps_to_its_budget(tmp_path):
    training = Training(tmp_path)
    training.save(1)
    budget = 4.5 * bytes_of(training, 1)
    checkpoints = training.checkpoints(None, f"checkpoint.max_gigabytes={budget / 1e9}")
    for step in range(2, 8):
        assert not save(checkpoints, Progress(step, best_loss_step=1)).problem
    assert training.folder.step_checkpoints() == [1, 5, 6, 7]


def test_a_budget_that_cannot_hold_the_best_and_the_next_is_refused_at_once(tmp_path):
    training = Training(tmp_path)
    with pytest.raises(DragomanError, match="one checkpoint has"):
        training.checkpoints(None, "checkpoint.max_gigabytes=0.0000009")
