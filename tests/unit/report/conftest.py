import pytest
from report_network_samples import write_network_run
from report_samples import write_sample_run

from dragoman.report.diagnosis import diagnose
from dragoman.run.reader import read_run


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory):
    """A run of 300 steps that died once at step 130; read only."""
    folder = write_sample_run(tmp_path_factory.mktemp("runs") / "demo", 300, 50, crash_at=130)
    return read_run(folder.path)


@pytest.fixture(scope="session")
def network_run(tmp_path_factory):
    """A run of two hosts on a port left at 100 Mb/s; read only."""
    return read_run(write_network_run(tmp_path_factory.mktemp("runs") / "network").path)


@pytest.fixture(scope="session")
def diagnosed(sample_run):
    return diagnose(sample_run)


@pytest.fixture(scope="session")
def diagnosed_network(network_run):
    return diagnose(network_run)
