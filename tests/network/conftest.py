"""Emulated hosts for tests. All tests here carry the marker `network` and run in one group, one after the other."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from emulated import EmulatedHosts

from dragoman.launch.lab.lab import open_lab
from dragoman.launch.lab.link import parse_link
from dragoman.launch.lab.requirements import LabUnavailable

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.network)
            item.add_marker(pytest.mark.xdist_group("network"))


@pytest.fixture
def lab_hosts(tmp_path, lacking) -> Generator[Callable[..., EmulatedHosts]]:
    """`lab_hosts(2, "100mbit")`: emulated hosts a and b, gone when the test ends. Options as of `open_lab`."""
    with ExitStack() as labs:

        def make(num_hosts: int = 2, link: str = "100mbit", is_sum: bool = False, **options: Any) -> EmulatedHosts:
            try:
                lab = labs.enter_context(
                    open_lab(num_hosts, parse_link(link, is_sum), working_folder=tmp_path, **options)
                )
            except LabUnavailable as error:
                lacking("network", str(error))
            hosts = EmulatedHosts(lab, tmp_path)
            labs.callback(hosts.close)
            return hosts

        yield make
