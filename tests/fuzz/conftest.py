"""Every reader in its own test file; how often each is tried is said by DRAGOMAN_FUZZ_INPUTS."""

from collections.abc import Callable

import pytest
from fuzz_readers import READERS
from fuzz_runs import Tally, num_inputs, run_apart, run_reader


@pytest.fixture
def tried() -> Callable[[str, int], Tally]:
    """`tried(reader, default)`: so many damaged inputs, of which some must have been refused."""

    def run(name: str, default: int) -> Tally:
        run_here = run_apart if READERS[name].is_native else run_reader
        tally = run_here(name, num_inputs(name, default))
        assert tally.inputs == tally.refused + tally.accepted
        assert tally.refused or tally.inputs < 100, "damage that nobody finds tests nothing"
        return tally

    return run
