"""The short form of `benchmarks/faults.py`. What needs emulated hosts carries the marker `network`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from dragoman.launch.lab.requirements import LabUnavailable
from fault_plan import RunPlan
from fault_run import lines_of_run
from fault_settings import prepare_data

NEEDS_HOSTS = "test_fault_runs.py"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name == NEEDS_HOSTS:
            item.add_marker(pytest.mark.network)
            item.add_marker(pytest.mark.xdist_group("network"))


@pytest.fixture(scope="module")
def tried_run(tmp_path_factory, lacking) -> Callable[..., list[dict[str, Any]]]:
    """`tried_run(plan)`: the lines of a run, those of its faults first. Options as of `lines_of_run`."""

    def lines(plan: RunPlan, **options: Any) -> list[dict[str, Any]]:
        work = tmp_path_factory.mktemp("faults")
        try:
            return list(lines_of_run(plan, work, prepare_data(work / "text"), **options))
        except LabUnavailable as error:
            lacking("network", str(error))

    return lines
