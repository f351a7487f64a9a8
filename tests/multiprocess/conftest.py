"""What tests of controlled runs share."""

import pytest
from controlled import ControlledRun


@pytest.fixture
def make_run(tmp_path):
    runs = []

    def make(program: str, num_workers: tuple[int, ...] = (1, 1), **options) -> ControlledRun:
        folder = tmp_path / f"run-{len(runs)}"
        folder.mkdir()
        runs.append(ControlledRun(folder, program, num_workers, **options))
        return runs[-1]

    yield make
    for run in runs:
        run.kill_all()
