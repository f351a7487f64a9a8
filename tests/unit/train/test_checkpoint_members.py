"""A checkpoint restored by other ranks than wrote it: hosts come and go, what is a rank's own stays with its host."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from checkpoint_training import Training, save

from dragoman.dist.world import World
from dragoman.run.checkpoint_files import RECIPE, STATE, WEIGHTS, find_damage, rank_file
from dragoman.train.progress import Progress
from thread_worlds import run_ranks

SHARED = 7.0
DILOCO = ("sync.method=diloco", "sync.every_steps=2", "sync.delay_steps=1")


def on_hosts(tmp_path: Path, hosts: Sequence[str], body: Callable[[World, Training], object]) -> list[object]:
    """One rank on each, with a disk of its own that outlives the attempt."""

    def work(world: World) -> object:
        world.host = hosts[world.rank]
        path = tmp_path / world.host
        path.mkdir(exist_ok=True)
        return body(world, Training(path))

    return run_ranks(len(hosts), work)


def own_weights(world: World, training: Training) -> tuple[float, list[str]]:
    checkpoints = training.checkpoints(world, *DILOCO)
    training.flat.weights.fill_(0)
    _, notes = checkpoints.restore()
    return float(training.flat.weights[0]), notes


def save_replica(world: World, training: Training) -> None:
    training.flat.weights.fill_(SHARED)
    checkpoints = training.checkpoints(world, *DILOCO)
    training.flat.weights.fill_(10 + world.rank)
    save(checkpoints, Progress(1))


def test_who_is_left_keeps_its_own_under_another_number(tmp_path):
    on_hosts(tmp_path, ("a", "b", "c"), save_replica)
    assert (tmp_path / "c/run/checkpoints/step-00000001" / rank_file(2)).exists()
    assert on_hosts(tmp_path, ("a", "c"), own_weights) == [(10.0, []), (12.0, [])]


def test_a_machine_with_another_name_keeps_its_own(tmp_path):
    on_hosts(tmp_path, ("a", "b"), save_replica)
    for old, new in (("a", "x"), ("b", "y")):
        (tmp_path / old).rename(tmp_path / new)
    assert on_hosts(tmp_path, ("x", "y"), own_weights) == [(10.0, []), (11.0, [])]


def test_one_that_is_new_begins_at_the_shared_weights_and_says_so(tmp_path):
    on_hosts(tmp_path, ("a", "b"), save_replica)
    (first, notes), _, (third, _) = on_hosts(tmp_path, ("a", "b", "c"), own_weights)
    assert first == 10.0
    assert third == SHARED
    assert "rank 2 has no state of its own in step-00000001: its exchange starts anew" in notes
    assert "checkpoint step-00000001 is missing on c: taking the copy of a" in notes


@pytest.mark.parametrize("broken", [RECIPE, WEIGHTS])
def test_what_is_a_ranks_own_is_kept_where_only_another_file_is_damaged(tmp_path, broken):
    on_hosts(tmp_path, ("a", "b"), save_replica)
    (tmp_path / "b/run/checkpoints/step-00000001" / broken).write_bytes(b"")
    (_, notes), (second, _) = on_hosts(tmp_path, ("a", "b"), own_weights)
    assert second == 11.0
    assert "is damaged on b" in notes[0] and "exchange starts anew" not in " ".join(notes)


def test_who_took_a_copy_has_one_of_its_own_before_the_first_step(tmp_path):
    """The host that it came from may be the next to go."""
    on_hosts(tmp_path, ("a", "b"), save_replica)
    (tmp_path / "b/run/checkpoints/step-00000001" / RECIPE).write_bytes(b"")
    before = (tmp_path / "a/run/checkpoints/step-00000001" / STATE).stat().st_mtime_ns
    on_hosts(tmp_path, ("a", "b", "c"), own_weights)
    for host in "abc":
        checkpoints = tmp_path / host / "run/checkpoints"
        assert find_damage(checkpoints / "step-00000001") is None
        assert (checkpoints / "last").readlink().name == "step-00000001"
        assert sorted(path.name for path in checkpoints.iterdir()) == ["last", "step-00000001"]
    assert (tmp_path / "a/run/checkpoints/step-00000001" / STATE).stat().st_mtime_ns == before, "it was whole"
    assert on_hosts(tmp_path, ("b", "c"), own_weights) == [(11.0, []), (SHARED, [])]


def test_a_rank_without_its_own_has_what_all_have_alike(tmp_path):
    """Its number of steps says how PowerSGD sends: ranks that differ in it would wait for each other for ever."""
    method = ("sync.method=powersgd", "sync.dense_steps=2", "sync.matrix_rank=1")

    def train(world: World, training: Training, steps: int) -> list[float]:
        training.flat.weights.fill_(SHARED)
        checkpoints = training.checkpoints(world, *method)
        checkpoints.restore()
        for _ in range(steps):
            training.flat.gradient.fill_(1.0 + world.rank)
            training.sync.exchange(1, 2)
        save(checkpoints, Progress(steps))
        return [float(training.sync.state()["num_steps"])]

    on_hosts(tmp_path, ("a", "b"), lambda world, training: train(world, training, 5))
    assert on_hosts(tmp_path, ("a", "c"), lambda world, training: train(world, training, 1)) == [[6.0], [6.0]]


def test_hosts_that_trained_apart_go_by_the_one_that_came_furthest(tmp_path):
    """The same name on both, and other weights: they must not be mixed."""

    def alone(value: float, *steps: int) -> Callable[[World, Training], None]:
        def body(world: World, training: Training) -> None:
            checkpoints = training.checkpoints(world)
            for step in steps:
                training.flat.weights.fill_(value)
                save(checkpoints, Progress(step))

        return body

    on_hosts(tmp_path, ("a",), alone(1.0, 1, 2))
    on_hosts(tmp_path, ("b",), alone(2.0, 2, 3))
    (tmp_path / "b/run/checkpoints/step-00000003/weights.safetensors").write_bytes(b"")

    def body(world: World, training: Training) -> tuple[int, float, list[str]]:
        training.flat.weights.fill_(0)
        progress, notes = training.checkpoints(world).restore()
        return progress.step, float(training.flat.weights[0]), notes

    first, second = on_hosts(tmp_path, ("a", "b"), body)
    assert first == second
    assert first[:2] == (2, 2.0)
    assert "checkpoint step-00000002 is another attempt's on a: taking the copy of b" in first[2]
