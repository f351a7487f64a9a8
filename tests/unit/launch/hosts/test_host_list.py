"""Hosts as users write them."""

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host, read_hosts, read_remote


def test_a_list_on_the_command_line():
    assert read_hosts("a,b:2, user@c") == [Host("a", "a"), Host("b", "b", num_workers=2), Host("c", "user@c")]


def test_a_list_may_be_longer_than_a_file_name():
    names = [f"node-{number:03d}.cluster.example.org" for number in range(20)]
    assert [host.name for host in read_hosts(",".join(names))] == names
    assert read_remote(f"a:{'x' * 300}") == (Host("a", "a"), "x" * 300)


def test_an_ipv6_address_stands_in_brackets():
    assert read_hosts("me@[fe80::1]:4") == [Host("fe80::1", "me@fe80::1", num_workers=4)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "an empty name"),
        ("a,,b", "an empty name"),
        ("a b", "'a b' is no host"),
        ("b:x", "asks for 'x' workers"),
        ("b:0", "asks for '0' workers"),
        ("b:", "asks for '' workers"),
        ("-oProxyCommand=x", "no ssh target"),
        ("a,b,a", "a is listed twice"),
        ("none.toml", "cannot read none.toml"),
    ],
)
def test_a_wrong_list_is_one_line_with_an_example(text, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DragomanError, match=problem.replace("(", r"\(")) as raised:
        read_hosts(text)
    assert raised.value.hint and "\n" not in str(raised.value.message)


def toml(tmp_path, text: str) -> str:
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    return str(path)


def test_a_file_says_everything(tmp_path):
    text = """
    [[host]]
    ssh = "root@198.51.100.7"
    port = 2201
    gpus = 2
    price = 3
    address = "10.0.0.7"
    python = "~/env/bin/python"
    [[host]]
    ssh = "b"
    name = "second"
    workers = 1
    """
    assert read_hosts(toml(tmp_path, text)) == [
        Host("198.51.100.7", "root@198.51.100.7", 2201, 2, 3.0, "10.0.0.7", "~/env/bin/python"),
        Host("second", "b", num_workers=1),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no list of hosts"),
        ("hosts = 3", "no list of hosts"),
        ("[[host]]\nname = 'a'", "host 1: ssh: Field required"),
        ("[[host]]\nssh = 'a'\nadress = '10.0.0.1'", "unknown key 'adress', did you mean 'address'"),
        ("[[host]]\nssh = 'a'\nport = 'x'", "host 1: port"),
        ("[[host]]\nssh = 'a'\n[[host]]\nssh = 'b'\nworkers = 0", "host 2: workers"),
        ("[[host]]\nssh = 'a'\naddress = 'b'", "address is 'b'"),
        ("[[host", "not valid TOML"),
        ("port = " + "7" * 5_000, "not valid TOML"),
        ("a = " + "[" * 5_000, "not valid TOML"),
        ("[[host]]\nssh = 'a'\nport = 0x" + "f" * 5_000, "host 1: port"),
    ],
)
def test_a_wrong_file_names_the_host_and_the_key(tmp_path, text, problem):
    with pytest.raises(DragomanError, match=problem):
        read_hosts(toml(tmp_path, text))


def test_machines_behind_one_address_are_told_apart_by_their_port(tmp_path):
    text = "".join(f'[[host]]\nssh = "root@gate"\nport = {port}\n' for port in (2201, 2202))
    assert [host.name for host in read_hosts(toml(tmp_path, text))] == ["gate-2201", "gate-2202"]


def test_a_remote_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_remote("me@a:runs/x") == (Host("a", "me@a"), "runs/x")
    assert read_remote("runs/x") is None
    assert read_remote("./a:b") is None
    with pytest.raises(DragomanError, match="names no folder"):
        read_remote("a:")


def test_a_remote_path_may_use_a_name_of_the_hosts_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = toml(tmp_path, '[[host]]\nssh = "root@198.51.100.7"\nport = 2201\nname = "first"\n')
    expected = Host("first", "root@198.51.100.7", 2201)
    assert read_remote("first:/x") == (expected, "/x")
    assert read_remote("first:/x", path) == (expected, "/x")
