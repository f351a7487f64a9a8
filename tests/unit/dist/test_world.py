"""One rank is the identity; two ranks agree."""

import json
from pathlib import Path

import pytest
import torch

from dragoman.dist.elastic import run_workers
from dragoman.dist.world import World, open_world, pick_device
from dragoman.errors import DragomanError
from dragoman.plan.payload import ring_bytes
from small_runs import kept_signals

CPU = torch.device("cpu")


def test_alone_every_collective_is_the_identity(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    world = open_world()
    assert (world.rank, world.size, world.is_first) == (0, 1, True)
    assert world.sum(torch.tensor([3.0])).tolist() == [3.0]
    assert (world.any(True), world.any(False)) == (True, False)
    assert world.gather({"a": 1}) == [{"a": 1}]
    world.close()


def test_alone_nothing_is_sent():
    world = World(0, 1, 0, CPU)
    values = torch.ones(1, 3)
    for result in (world.sum(values), world.swap(values), world.broadcast(values), *world.start_gather(values).wait()):
        assert result.tolist() == [[1, 1, 1]]
    assert world.sent_bytes == 0


def test_alone_a_failure_is_just_raised():
    with pytest.raises(DragomanError, match="no room"), World(0, 1, 0, CPU).together():
        raise DragomanError("no room")


def test_the_ring_sends_what_the_arithmetic_says():
    """DESIGN section 1: 60.9 M parameters, four ranks, 365 MB."""
    assert ring_bytes(60_900_000 * 4, 4) == 365_400_000


def test_the_cpu_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device() == CPU


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> list[dict]:
    """Two real ranks over gloo, through torchrun's agent."""
    folder = tmp_path_factory.mktemp("ranks")
    program = Path(__file__).with_name("world_program.py")
    with kept_signals():
        assert run_workers([str(program), str(folder)], 2) == {}
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


def test_two_ranks_know_who_they_are(seen):
    assert [(rank["rank"], rank["size"], rank["is_first"]) for rank in seen] == [(0, 2, True), (1, 2, False)]


def test_two_ranks_see_the_same_sums_votes_and_values(seen):
    for rank in seen:
        assert rank["sum"] == [2.0, 10.0]
        assert rank["any"] == [True, False, True]
        assert rank["gather"] == [
            {"rank": 0, "text": "ü", "rows": [[1, None]]},
            {"rank": 1, "text": "üüüüüü", "rows": [[1, None]]},
        ]


def test_two_ranks_swap_rows_hear_the_first_and_gather_in_order(seen):
    assert [rank["swap"] for rank in seen] == [[[1, 2], [2, 4]], [[3, 4], [6, 8]]]
    assert [rank["broadcast"] for rank in seen] == [[5], [5]]
    assert [rank["pending"] for rank in seen] == [[[7, 0], [7, 1]]] * 2
    assert [rank["crossed"] for rank in seen] == [[[20, 21], [10, 11]]] * 2


def test_every_byte_that_leaves_a_rank_is_counted(seen):
    """A ring of two passes half of a sum on twice; one part of what is gathered or swapped stays at home."""
    assert [rank["sent_bytes"] for rank in seen] == [[400, 30, 200, 40]] * 2


def test_two_ranks_of_one_host_are_together_inside_and_alone_outside(seen):
    assert [rank["within_host"] for rank in seen] == [[2, 0], [2, 1]]
    assert [rank["between_hosts"] for rank in seen] == [[1, 0], [1, 0]]


def test_a_failure_on_one_rank_ends_both_and_only_one_says_why(seen):
    assert [rank["together"] for rank in seen] == ["all well", "all well"]
    assert [rank["failed"] for rank in seen] == ["no room", 2]


@pytest.mark.parametrize(
    ("program", "failures"),
    [
        ("import os, sys; sys.exit(3 if os.environ['RANK'] == '1' else 0)", {1: 3}),
        ("import os, time; time.sleep(60) if os.environ['RANK'] == '1' else os.kill(os.getpid(), 9)", {0: -9}),
        ("import os; assert os.environ['WORLD_SIZE'] == '2'", {}),
    ],
)
def test_the_ranks_that_failed_are_named_with_their_codes(program, failures, capfd):
    with kept_signals():
        found = run_workers(["-c", program], 2)
    assert failures.items() <= found.items() and bool(found) == bool(failures)
    assert "Traceback" not in capfd.readouterr().err


def test_a_device_that_does_not_exist_is_the_users_to_mend(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEVICE", "gpu")
    with pytest.raises(DragomanError, match="DRAGOMAN_DEVICE is 'gpu'") as caught:
        pick_device()
    assert caught.value.hint == "use one of auto, cpu, cuda"


def test_a_gpu_that_is_asked_for_and_not_there_is_no_cpu(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DragomanError, match="torch finds no GPU here"):
        pick_device()
