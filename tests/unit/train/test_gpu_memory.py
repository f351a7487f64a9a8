"""What ranks have of GPUs, and one line where it did not suffice; on a machine without any."""

import pytest
import torch

from dragoman.config import CutBatch
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.run.control import OUT_OF_MEMORY
from dragoman.train import memory, profile_rank, rank
from dragoman.train.memory import free_gpu_bytes, naming_batch, poorest_share
from dragoman.train.profile_task import ProfileTask
from small_runs import kept_signals, tiny_job, tiny_recipe

CPU = World(0, 1, 0, torch.device("cpu"))
BATCH = CutBatch(target_tokens=25_600, num_microbatches=2, max_pieces=256)


def word(gpu: str, free: int, taken: int = 0) -> dict[str, object]:
    return {"gpu": gpu, "free": free, "taken": taken}


@pytest.mark.parametrize(
    ("told", "share"),
    [
        ([None, None], None),
        ([word("a", 50), word("b", 70)], 50),
        ([word("a", 50, taken=30), word("b", 70)], 70),
        ([word("a", 40, taken=10), word("a", 44, taken=20)], 35),
        ([word("a", 50), None], 50),
    ],
)
def test_ranks_of_one_gpu_share_it_and_the_poorest_counts(told, share):
    assert poorest_share(told) == share


def test_processors_have_no_gpu_memory():
    assert free_gpu_bytes(CPU) is None


def out_of_memory(*_: object, **__: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


def told(batch: CutBatch, world: World = CPU) -> DragomanError:
    with pytest.raises(DragomanError) as caught, naming_batch(batch, world):
        out_of_memory()
    assert "\n" not in caught.value.message
    return caught.value


def test_the_batch_and_the_setting_are_named():
    error = told(BATCH)
    assert error.message == (
        f"rank 0 on {CPU.host} is out of GPU memory with microbatches of 12,800 target tokens (2 a step)"
    )
    assert error.hint.startswith("--set batch.num_microbatches=4 ")


def test_the_memory_of_the_gpu_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (120_000_000, 16_000_000_000))
    error = told(BATCH, World(3, 4, 1, torch.device("cuda", 1)))
    assert "rank 3 on " in error.message
    assert error.message.endswith("(2 a step); 120 MB of 16 GB are free")


@pytest.mark.parametrize(("number", "words"), [(49, "--set batch.num_microbatches=98"), (50, "take a smaller recipe")])
def test_nobody_is_sent_to_a_number_that_is_refused(number, words):
    assert words in told(CutBatch(target_tokens=25_600, num_microbatches=number, max_pieces=256)).hint


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'",
        "Triton Error [CUDA]: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_it_need_not_be_torch_that_ran_out(words):
    with pytest.raises(DragomanError, match="out of GPU memory"), naming_batch(BATCH, CPU):
        raise RuntimeError(words)


def test_it_may_lie_under_another_error():
    with pytest.raises(DragomanError, match="out of GPU memory"), naming_batch(BATCH, CPU):
        try:
            out_of_memory()
        finally:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")


@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(error, match="of another kind"), naming_batch(BATCH, CPU):
        raise error("of another kind")


def test_a_worker_out_of_memory_says_so_in_two_lines(phrasebook_data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rank, "train", out_of_memory)
    with kept_signals():
        assert rank.main(tiny_job(phrasebook_data, tmp_path / "run")) == OUT_OF_MEMORY
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: rank 0 on ")
    assert "microbatches of 100 target tokens (4 a step)" in first
    assert second == "  hint: they cannot be smaller and hold a sentence of batch.max_pieces: take a smaller recipe"


def test_a_rank_of_doctor_says_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(profile_rank, "measure_compute", out_of_memory)
    recipe = tiny_recipe("batch.num_microbatches=auto", "batch.max_pieces=20")
    task = ProfileTask(str(tmp_path / "measured.json"), recipe.model_dump(), is_quiet=True)
    assert profile_rank.main(task.to_json()) == OUT_OF_MEMORY
    first, second = capsys.readouterr().err.splitlines()
    assert "microbatches of 50 target tokens (8 a step)" in first
    assert "--set batch.num_microbatches=16" in second


def test_a_gpu_says_what_it_has(monkeypatch):
    class Properties:
        uuid = "GPU-7"

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (70, 80))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 5)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties())
    assert memory._own_memory(torch.device("cuda", 0)) == word("GPU-7", 70, 5)
    assert free_gpu_bytes(World(0, 1, 0, torch.device("cuda", 0))) == 75
