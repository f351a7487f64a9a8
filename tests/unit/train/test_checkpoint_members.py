"""A checkpoint restored by other ranks than wrote it: hosts come and go, what is a rank's own stays with its host."""

from collections.abc import Callable, Sequence
from pathlib import Path

from checkpoint_training import Training, save

from dragoman.dist.world import World
from dragoman.model.weights import load_tensors
from dragoman.run.checkpoint_files import WEIGHTS, rank_file
from dragoman.train.progress import Progress
from thread_worlds import run_ranks

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
    shared = load_tensors(tmp_path / "a/run/checkpoints/step-00000001" / WEIGHTS)
    assert third in [float(tensor.flatten()[0]) for tensor in shared.values()]
    assert "rank 2 has no state of its own in step-00000001: its exchange starts anew" in notes
    assert "checkpoint step-00000001 is missing on c: taking the copy of a" in notes


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
