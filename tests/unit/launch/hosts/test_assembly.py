"""From named hosts to the members of a run: every check, all problems at once, data pushed and verified."""

import json
import shutil
import time
from pathlib import Path

import pytest

from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError
from dragoman.launch.hosts import assembly, facts, survey
from dragoman.launch.hosts.assembly import assemble
from dragoman.launch.hosts.facts import machine_identity
from dragoman.launch.hosts.hosts import Host, read_hosts
from dragoman.launch.hosts.members import Member
from dragoman.launch.hosts.session import HostSession, open_sessions
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def homes(tmp_path, monkeypatch, phrasebook_data) -> Path:
    """Homes of hosts a and b, with the data in both."""
    stand_in_hosts(tmp_path, monkeypatch, "a", "b")
    for name in "ab":
        shutil.copytree(phrasebook_data, tmp_path / name / "data")
    return tmp_path


def change_facts(homes: Path, host: str, **changes) -> None:
    path = homes / host / "facts.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def assemble_hosts(text: str = "a,me@b:2", **options):
    said: list[str] = []
    team = assemble(read_hosts(text), "data", "runs/x", say=said.append, **options)
    return team, said


def problem_of(text: str = "a,b", **options) -> str:
    with pytest.raises(DragomanError) as raised:
        assemble_hosts(text, **options)
    return raised.value.message


def test_two_good_hosts(homes, phrasebook_data):
    team, said = assemble_hosts()
    assert team.members == (
        Member("a", "a", None, None, "127.0.0.1", "lo", 1),
        Member("b", "me@b", None, None, "127.0.0.2", "lo", 2),
    )
    assert (team.subnet, team.data, team.run, team.world_size) == ("127.0.0.0/8", "data", "runs/x", 3)
    assert team.fingerprint == open_shards(phrasebook_data).manifest.fingerprint
    assert team.link_bytes_per_second > 1e7
    assert len(said) == 1 and said[0].startswith("network: 127.0.0.0/8 (lo), ")


def test_members_cross_as_json(homes):
    team, _ = assemble_hosts()
    crossed = [Member.from_dict({**json.loads(json.dumps(m.to_dict())), "later": 1}) for m in team.members]
    assert tuple(crossed) == team.members
    assert team.members[1].host == Host("b", "me@b", num_workers=2, address="127.0.0.2")


def test_one_host_needs_no_network(homes):
    team, _ = assemble_hosts("b")
    assert team.link_bytes_per_second is None and team.members[0].address == "127.0.0.2"


def test_open_sessions_are_used_and_left_open(homes):
    with open_sessions(read_hosts("a,b")) as sessions:
        assemble([], "data", "runs/x", say=print, sessions=sessions)
        assert sessions[1].call("facts")["versions"]


def test_everything_that_is_wrong_is_said_at_once(homes, monkeypatch):
    shutil.rmtree(homes / "a" / "data")
    (homes / "b" / "complaint").write_text("ssh: connect to host b port 22: Connection refused")
    message = problem_of("a,b,zz")
    lines = message.splitlines()
    assert lines[0] == "not every host is ready"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["b", "zz", "a"]
    assert "refuses the connection" in message and "does not resolve" in message and "--push-data" in message


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("dragoman", "0.0.9", "a: has Dragoman {there}, here is 0.0.9"),
        ("code", "other", "a: has other code of Dragoman"),
    ],
)
def test_another_dragoman_than_ours(homes, monkeypatch, key, value, problem):
    real = survey.versions()
    monkeypatch.setattr(survey, "versions", lambda: {**real, key: value})
    message = problem_of()
    assert problem.format(there=real["dragoman"]) in message and "dragoman setup" in message


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ({"torch": "2.11.0"}, "b: has torch 2.11.0, a has "),
        ({"torch": ""}, "b: has no torch"),
        ({"python": "3.8"}, "b: has Python 3.8, a has 3."),
    ],
)
def test_another_torch_or_python_than_the_first_host(homes, versions, problem):
    change_facts(homes, "b", versions={**survey.versions(), **versions})
    assert problem in problem_of()


def test_other_data(homes):
    manifest = homes / "b" / "data" / "manifest.json"
    fingerprint = json.loads(manifest.read_text())["fingerprint"]
    manifest.write_text(manifest.read_text().replace(fingerprint, "0" * 64))
    assert f"b: has other data in {homes}/b/data than a; --push-data replaces it" in problem_of()


def test_a_shard_of_the_wrong_size(homes):
    next((homes / "b" / "data" / "train").glob("*.source.bin")).write_bytes(b"short")
    assert "b: the data folder is damaged" in problem_of()


def test_too_little_room(homes):
    message = problem_of(needs_bytes=1 << 60)
    assert "a: has " in message and "1.15e+06 TB are needed" in message


def test_a_folder_that_may_not_be_written():
    problems = survey.Problems()
    folder = {"run": {"path": "/srv/runs/x", "is_writable": False, "free_bytes": 1 << 60}}
    survey.check_run_folders({HostSession(Host("b", "b")): folder}, 1, problems)
    assert problems.lines == ["b: may not write to /srv/runs/x; name another folder with --run"]


def test_folders_that_may_not_be_looked_into(tmp_path, monkeypatch):
    def refuse(path, *_) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("is_dir", "is_file", "exists", "stat"):
        monkeypatch.setattr(Path, name, refuse)
    found = facts.inspect_folders(f"{tmp_path}/data", f"{tmp_path}/none/x")
    assert found["data"]["problem"] == f"cannot read {tmp_path}/data/manifest.json: Permission denied"
    assert found["run"]["free_bytes"] > 0


def test_one_machine_under_two_names(homes):
    change_facts(homes, "b", machine_identity=["a"])
    assert "b: is the same machine as a; name it once, as a:2" in problem_of()


def test_gpus_give_the_number_of_workers(homes):
    change_facts(homes, "a", count_gpus=4)
    change_facts(homes, "b", count_gpus=1)
    team, said = assemble_hosts("a,b:2")
    assert [member.num_workers for member in team.members] == [4, 2]
    assert said[-1] == "warning: b has 1 GPUs for 2 workers, which will share them"


def test_a_network_that_a_host_does_not_have(homes):
    assert "b: has no card eth7" in problem_of(interface="eth7")


def test_the_first_host_is_this_machine(homes, monkeypatch):
    """Then relative paths begin at the current folder, as the user sees them."""
    change_facts(homes, "a", machine_identity=machine_identity())
    shutil.copytree(homes / "a" / "data", homes / "here" / "data")
    monkeypatch.chdir(homes / "here")
    team, _ = assemble_hosts("a,b")
    assert team.is_first_here
    assert (team.data, team.run) == (str(homes / "here" / "data"), str(homes / "here" / "runs" / "x"))


def test_data_is_pushed_where_it_is_missing_or_other(homes, phrasebook_data):
    shutil.rmtree(homes / "a" / "data")
    manifest = homes / "b" / "data" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(json.loads(text)["fingerprint"], "0" * 64))
    team, said = assemble_hosts(push_data=True, local_data=phrasebook_data)
    assert said[0].startswith("data copied to a, b: ") and said[0].endswith("hashes verified")
    for name in "ab":
        assert open_shards(homes / name / "data").manifest.fingerprint == team.fingerprint
        assert [path.name for path in (homes / name).glob(".data*")] == []
    _, said = assemble_hosts(push_data=True, local_data=phrasebook_data)
    assert len(said) == 1, "what is there is not pushed again"


def test_a_folder_that_is_no_data_is_not_replaced(homes, phrasebook_data):
    shutil.rmtree(homes / "b" / "data")
    (homes / "b" / "data").mkdir()
    (homes / "b" / "data" / "thesis.txt").touch()
    message = problem_of(push_data=True, local_data=phrasebook_data)
    assert "b: " in message and "is there and is no data folder" in message
    assert (homes / "b" / "data" / "thesis.txt").exists()


def test_bytes_that_are_not_those_of_the_manifest_do_not_get_the_name(homes, tmp_path_factory, phrasebook_data):
    spoilt = tmp_path_factory.mktemp("spoilt") / "data"
    shutil.copytree(phrasebook_data, spoilt)
    shard = next((spoilt / "train").glob("*.source.bin"))
    shard.write_bytes(bytes(shard.stat().st_size))
    shutil.rmtree(homes / "b" / "data")
    message = problem_of(push_data=True, local_data=spoilt)
    assert "b: " in message and "arrived with other bytes than its manifest says" in message
    assert not (homes / "b" / "data").exists()


def test_nothing_to_push(homes, tmp_path):
    assert "is not a prepared data folder" in problem_of(push_data=True, local_data=tmp_path / "none")


def test_the_checks_take_seconds(homes):
    start = time.monotonic()
    assemble_hosts()
    assert time.monotonic() - start < 10
    assert assembly.NEEDS_BYTES == 2 << 30
