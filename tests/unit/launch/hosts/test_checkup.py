"""What a host says about itself: plain facts here, and what is missing or refused is said and not raised."""

import socket
import sys
from types import SimpleNamespace

import pytest

from dragoman.diagnose.preflight.checks import facts_from
from dragoman.errors import DragomanError
from dragoman.launch.hosts import checkup, gpu_facts


def test_this_machine(tmp_path):
    facts = facts_from(checkup.checkup(str(tmp_path / "not" / "there"), "a"))
    assert (facts.name, facts.folder, facts.hostname) == ("a", str(tmp_path), socket.gethostname())
    assert facts.disk_bytes_per_second and facts.disk_bytes_per_second > 1e5
    assert 0 <= facts.cpu_busy <= 1
    assert 0 < facts.memory_free_bytes <= facts.memory_bytes
    assert not list(tmp_path.iterdir())


def test_a_disk_that_refuses_is_a_fact(monkeypatch, tmp_path):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkup.tempfile, "TemporaryFile", refuse)
    facts = facts_from(checkup.checkup(str(tmp_path)))
    assert (facts.disk_free_bytes, facts.disk_problem) == (None, "Permission denied")


def test_a_taken_port_is_a_fact(monkeypatch):
    with socket.create_server(("", 0)) as listener:
        monkeypatch.setattr(checkup, "STORE_PORT", listener.getsockname()[1])
        assert checkup._port_problem().endswith("is taken")
    assert checkup._port_problem() == ""


def test_scratch_is_made_read_and_dropped(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    token = "0123456789abcdef"
    path = checkup.make_scratch(token)
    assert checkup.read_measured(token) is None
    checkup.scratch_folder(token).joinpath(checkup.MEASURED).write_text("{}")
    assert checkup.read_measured(token) == "{}"
    checkup.drop_scratch(token)
    assert path.startswith(str(tmp_path)) and not checkup.scratch_folder(token).exists()
    with pytest.raises(DragomanError):
        checkup.drop_scratch("../../etc")


class FakeNvml(SimpleNamespace):
    """A card that knows some answers and refuses the others, as cards do."""

    NVML_CLOCK_SM = NVML_MEMORY_ERROR_TYPE_UNCORRECTED = NVML_VOLATILE_ECC = 1

    def __init__(self, **answers):
        known = {"Init": None, "DeviceGetCount": 1, "DeviceGetHandleByIndex": "card", **answers}
        super().__init__(**{f"nvml{name}": lambda *_, value=value: value for name, value in known.items()})


def test_a_gpu_says_what_it_knows(monkeypatch):
    memory = SimpleNamespace(total=80 << 30, used=1 << 30)
    nvml = FakeNvml(
        DeviceGetName=b"NVIDIA V100", DeviceGetMemoryInfo=memory, DeviceGetEnforcedPowerLimit=150_000,
        DeviceGetPowerManagementDefaultLimit=300_000, DeviceGetCurrentClocksThrottleReasons=0x21,
        DeviceGetTotalEccErrors=2, DeviceGetRemappedRows=(0, 0, 1, 0),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    (gpu,), problem = gpu_facts.gpu_facts()
    assert (gpu.name, gpu.power_limit_watts, gpu.default_power_watts) == ("NVIDIA V100", 150.0, 300.0)
    assert (gpu.num_ecc_errors, gpu.needs_reset, gpu.throttle_reasons) == (2, True, ("heat",))
    assert (gpu.num_processes, gpu.max_clock_mhz, problem) == (None, None, "")


@pytest.mark.parametrize("has_card", [True, False])
def test_a_driver_that_does_not_answer_matters_where_there_is_a_card(monkeypatch, has_card):
    nvml = FakeNvml()
    nvml.nvmlInit = lambda: 1 / 0
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(gpu_facts, "_has_card", lambda: has_card)
    gpus, problem = gpu_facts.gpu_facts()
    assert gpus == () and bool(problem) == has_card
