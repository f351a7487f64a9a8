import pytest
from run_samples import a_manifest

from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.writer import write_manifest


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    made = create_run_folder(tmp_path / "run")
    write_manifest(made, a_manifest())
    return made
