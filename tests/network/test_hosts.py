"""Hosts that are really reached by ssh: checks, the choice of the network, data, and installing from nothing."""

import json
import shutil
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from borrowed_wheels import write_borrowed_wheels
from dragoman.launch.hosts.package import torch_version
from dragoman.launch.lab.link import parse_link

PROGRAM = Path(__file__).parent / "assembling.py"


@pytest.fixture
def data(phrasebook_data, tmp_path) -> Path:
    """The data, in the folder in which commands run: the same path on every host."""
    shutil.copytree(phrasebook_data, tmp_path / "data")
    return tmp_path / "data"


def assemble_on_a(hosts, names: str = "a,b", env: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    return json.loads(hosts.output_of("a", [sys.executable, PROGRAM, names, json.dumps(options)], env=env))


def addresses(outcome: dict[str, Any]) -> list[str]:
    return [member["address"] for member in outcome["team"]["members"]]


def test_two_hosts_become_a_team_in_seconds(lab_hosts, data, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    outcome = assemble_on_a(hosts)
    team = outcome["team"]
    assert addresses(outcome) == [hosts.address_of("a"), hosts.address_of("b")]
    assert [member["interface"] for member in team["members"]] == ["eth0", "eth0"]
    assert team["is_first_here"] and team["data"] == str(data) and team["run"] == str(tmp_path / "runs" / "x")
    assert team["link_bytes_per_second"] == pytest.approx(100e6 / 8, rel=0.15)
    assert outcome["seconds"] < 10
    assert hosts.processes_on("b") == {}


def test_the_private_card_is_found_behind_public_names(lab_hosts, data):
    outcome = assemble_on_a(lab_hosts(3, "100mbit", public=parse_link("20mbit")), "a,b,c")
    assert [address.startswith("10.77.") for address in addresses(outcome)] == [True, True, True]
    assert not [line for line in outcome["said"] if "warning" in line]


def test_a_public_card_is_taken_where_it_is_faster_and_said_to_be_public(lab_hosts, data):
    outcome = assemble_on_a(lab_hosts(2, "20mbit", public=parse_link("100mbit")))
    assert [address.startswith("192.0.2.") for address in addresses(outcome)] == [True, True]
    assert "public addresses" in outcome["said"][0]


def test_the_user_chooses(lab_hosts, data):
    hosts = lab_hosts(2, "20mbit", public=parse_link("100mbit"))
    assert addresses(assemble_on_a(hosts, subnet="10.0.0.0/8"))[1].startswith("10.77.")
    assert addresses(assemble_on_a(hosts, interface="eth0"))[1].startswith("10.77.")
    assert "b: has no card eth9" in assemble_on_a(hosts, interface="eth9")["error"]


def test_a_way_that_is_blocked_is_named_and_another_one_taken(lab_hosts, data):
    hosts = lab_hosts(2, "100mbit", public=parse_link("20mbit"))
    hosts.output_of("b", ["ip", "route", "add", "blackhole", f"{hosts.address_of('a')}/32"])
    blocked = assemble_on_a(hosts, subnet="10.77.0.0/16")
    assert f"a cannot reach {hosts.address_of('b')} of b: no answer" in blocked["error"]
    assert f"b cannot reach {hosts.address_of('a')} of a: " in blocked["error"]
    assert "open TCP between these addresses in the firewall" in blocked["hint"]
    assert addresses(assemble_on_a(hosts))[0].startswith("192.0.2.")


def test_hosts_that_cannot_be_reached_are_all_named(lab_hosts, data, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    if not hosts.lab.plan.has_sshd:
        pytest.skip("without root there is no sshd to refuse anybody")
    (tmp_path / "hosts.toml").write_text(
        '[[host]]\nssh = "a"\n[[host]]\nssh = "nowhere.invalid"\n[[host]]\nssh = "b"\nport = 1\n'
    )
    outcome = assemble_on_a(hosts, "hosts.toml")
    assert "nowhere.invalid: its name does not resolve" in outcome["error"]
    assert "b: refuses the connection" in outcome["error"]
    assert outcome["seconds"] < 10
    no_key = {"DRAGOMAN_SSH": hosts.environment["DRAGOMAN_SSH"] + " -o PubkeyAuthentication=no"}
    assert "b: does not accept your ssh key" in assemble_on_a(hosts, env=no_key)["error"]


def test_data_goes_to_the_host_that_lacks_it(lab_hosts, data):
    hosts = lab_hosts(2, "100mbit")
    hosts.output_of("b", ["rm", "-rf", data])
    assert f"b: {data} is not a prepared data folder" in assemble_on_a(hosts)["error"]
    outcome = assemble_on_a(hosts, push_data=True)
    assert outcome["said"][0].startswith("data copied to b: ")
    listing = ["sh", "-c", f"cd {data} && find . -type f | sort | xargs sha256sum"]
    assert hosts.output_of("b", listing) == hosts.output_of("a", listing)


def test_a_bare_host_is_set_up(lab_hosts, data, tmp_path):
    """Our own Python is not there, so the host has no Dragoman until it is installed; then it takes part."""
    write_borrowed_wheels(tmp_path / "wheels")
    python = caller_environment(tmp_path / "caller")
    hosts = lab_hosts(2, "100mbit")
    hosts.output_of("b", ["rm", "-rf", tmp_path / "caller"])
    ask = [python, PROGRAM, "a,b", "{}"]
    assert "dragoman setup --hosts" in json.loads(hosts.output_of("a", ask))["error"]

    setup = [python, "-m", "dragoman.cli", "setup", "--hosts", "a,b", "--wheels", "wheels", "--pip-args=--no-deps"]
    done = hosts.run_on("a", setup, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "a: already there" in done.stderr and "b: ready" in done.stderr
    assert f"installing Dragoman and torch {torch_version()}" in done.stderr
    assert "team" in json.loads(hosts.output_of("a", ask))
    assert "b: already there" in hosts.run_on("a", setup, timeout=60).stderr


def caller_environment(folder: Path) -> Path:
    """A virtual environment of the caller's own, that borrows the packages of this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    lines = ["import site", *(f"site.addsitedir({path!r})" for path in sys.path if path.endswith("site-packages"))]
    (site / "borrowed.pth").write_text("; ".join(lines) + "\n")
    return folder / "bin" / "python"
