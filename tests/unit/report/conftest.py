import pytest
from report_samples import write_sample_run

from dragoman.run.reader import read_run


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory):
    """A run of 300 steps that died once at step 130; read only."""
    folder = write_sample_run(tmp_path_factory.mktemp("runs") / "demo", 300, 50, crash_at=130)
    return read_run(folder.path)
