"""Which network the hosts talk over: candidates, choice, and real probes over loopback addresses."""

import socket
import time

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.hosts import probe, routes
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.network import (
    Candidate,
    Measured,
    choose,
    common_subnets,
    parse_cards,
    routed_candidates,
    wanted_candidate,
)
from dragoman.launch.hosts.probe import Listener, send_probe
from dragoman.launch.hosts.routes import find_network, measure, probe_rounds
from dragoman.launch.hosts.session import open_sessions
from stand_in_hosts import stand_in_hosts


def cards(*texts: str):
    """'eth0 10.0.0.1/24' as a host reports it."""
    entries = []
    for text in texts:
        interface, address = text.split()
        number, _, prefix = address.partition("/")
        entries.append({"interface": interface, "address": number, "netmask": prefix})
    return parse_cards(entries)


A = cards("docker0 172.17.0.1/16", "pub0 192.0.2.1/24", "eth1 10.0.0.1/24")
B = cards("docker0 172.17.0.1/16", "pub0 192.0.2.2/24", "ens5 10.0.0.2/24")


def labels(candidates) -> list[str]:
    return [each.label for each in candidates]


def test_common_subnets_leave_out_what_every_machine_has_alike():
    found = common_subnets([A, B])
    assert labels(found) == ["192.0.2.0/24", "10.0.0.0/24"]
    assert [card.address for card in found[1].cards] == ["10.0.0.1", "10.0.0.2"]
    assert [card.interface for card in found[1].cards] == ["eth1", "ens5"]


def test_a_subnet_that_one_host_lacks_is_no_candidate():
    assert labels(common_subnets([A, B, cards("eth0 192.0.2.3/24")])) == ["192.0.2.0/24"]


def test_bridges_come_last():
    bridged = [cards("br-1 172.18.0.1/16", "eth0 10.0.0.1/8"), cards("br-1 172.18.0.2/16", "eth0 10.0.0.2/8")]
    assert labels(common_subnets(bridged)) == ["10.0.0.0/8", "172.18.0.0/16"]


def test_single_addresses_behind_a_router_are_found_by_their_private_range():
    """Some clouds give every machine a /32 and route between them."""
    hosts = [cards("ens4 10.128.0.2/32"), cards("ens4 10.132.0.9/32")]
    assert common_subnets(hosts) == []
    assert labels(routed_candidates(hosts, [None, None])) == ["routed 10.0.0.0/8"]


def test_the_addresses_of_ssh_are_the_last_resort():
    hosts = [cards("eth0 203.0.113.5/32"), cards("eth0 198.51.100.6/24")]
    found = routed_candidates(hosts, ["203.0.113.5", "198.51.100.6"])
    assert labels(found) == ["the addresses of ssh"]
    assert routed_candidates(hosts, ["203.0.113.5", "127.0.0.1"]) == []


def measured(label: str, rate: float, *texts: str, problem: str = "") -> Measured:
    problems = {(0, 1): problem} if problem else {}
    return Measured(Candidate(label, tuple(cards(*texts))), {(0, 1): rate, (1, 0): 2 * rate}, problems)


PUBLIC = ("pub0 192.0.2.1/24", "pub0 192.0.2.2/24")
PRIVATE = ("eth1 10.0.0.1/24", "eth1 10.0.0.2/24")


@pytest.mark.parametrize(
    ("public_rate", "private_rate", "problem", "expected"),
    [
        (100.0, 50.0, "", "public"),
        (100.0, 95.0, "", "private"),
        (50.0, 100.0, "", "private"),
        (50.0, 100.0, "no answer", "public"),
    ],
)
def test_the_fastest_wins_and_a_private_one_among_equals(public_rate, private_rate, problem, expected):
    candidates = [
        measured("public", public_rate, *PUBLIC),
        measured("private", private_rate, *PRIVATE, problem=problem),
    ]
    assert choose(candidates).candidate.label == expected


def test_nothing_usable():
    assert choose([measured("x", 1.0, *PRIVATE, problem="no answer")]) is None
    assert choose([]) is None


def test_what_the_user_fixed():
    hosts = [Host("a", "a"), Host("b", "b")]
    assert wanted_candidate(hosts, [A, B], None, None) == (None, {})
    found, problems = wanted_candidate(hosts, [A, B], "pub0", None)
    assert [card.address for card in found.cards] == ["192.0.2.1", "192.0.2.2"] and not problems
    found, _ = wanted_candidate(hosts, [A, B], None, "10.0.0.0/8")
    assert [card.address for card in found.cards] == ["10.0.0.1", "10.0.0.2"]
    _, problems = wanted_candidate(hosts, [A, B], "eth1", None)
    assert problems.keys() == {"b"} and "no card eth1" in problems["b"] and "ens5 10.0.0.2/24" in problems["b"]
    _, problems = wanted_candidate(hosts, [A, B], None, "10.9.0.0/16")
    assert problems.keys() == {"a", "b"}
    with pytest.raises(DragomanError, match="no IPv4 subnet"):
        wanted_candidate(hosts, [A, B], None, "eth0")


def test_an_address_that_two_hosts_have_is_named():
    """Docker gives every machine the same one."""
    found, problems = wanted_candidate([Host("a", "a"), Host("b", "b")], [A, B], "docker0", None)
    assert found is None and problems == {"b": "has the same address 172.17.0.1 as a"}


def test_an_address_in_the_hosts_file_fixes_the_network():
    hosts = [Host("a", "a", address="10.0.0.1"), Host("b", "b")]
    found, _ = wanted_candidate(hosts, [A, B], None, None)
    assert [card.address for card in found.cards] == ["10.0.0.1", "10.0.0.2"]
    hosts = [Host("a", "a", address="10.0.0.99"), Host("b", "b")]
    assert "no address 10.0.0.99" in wanted_candidate(hosts, [A, B], None, None)[1]["a"]


def test_a_probe_tells_the_rate():
    listener = Listener("127.0.0.1")
    try:
        answer = send_probe("127.0.0.1", listener.port, listener.token)
        assert answer["bytes_per_second"] > 1e7
        assert "problem" in send_probe("127.0.0.1", listener.port, "0" * probe.TOKEN_BYTES), "any token is taken"
    finally:
        listener.close()
    assert "problem" in send_probe("127.0.0.1", listener.port, listener.token)


def test_a_listener_that_nobody_closes_ends_by_itself(monkeypatch):
    monkeypatch.setattr(probe, "LIFE_SECONDS", 0.1)
    listener = Listener("127.0.0.1")
    deadline = time.monotonic() + 10
    while listener._socket.fileno() >= 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listener.port), 5)
    listener.close()


def test_a_port_that_swallows_everything_is_given_up_soon():
    """A firewall that drops packets looks like this: no answer at all."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        assert send_probe("127.0.0.1", silent.getsockname()[1], "x") == {"problem": "no answer"}
        assert time.monotonic() - start < 3


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_pair_is_probed_each_way_and_no_host_is_in_two_probes_at_once(size):
    rounds = list(probe_rounds(size))
    pairs = [pair for pairs in rounds for pair in pairs]
    assert sorted(pairs) == [(a, b) for a in range(size) for b in range(size) if a != b]
    assert all(len(pairs) * 2 == len({host for pair in pairs for host in pair}) for pairs in rounds)
    assert len(rounds) <= 2 * size


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    stand_in_hosts(tmp_path, monkeypatch, "a", "b", "c")
    with open_sessions([Host(name, name) for name in "abc"]) as opened:
        yield opened


def loopback(*numbers: int) -> Candidate:
    return Candidate("loopback", tuple(cards(*(f"lo 127.0.0.{number}/8" for number in numbers))))


def test_all_pairs_are_probed(sessions):
    (found,) = measure(sessions, [loopback(1, 2, 3)])
    assert len(found.rates) == 6 and not found.problems
    assert found.slowest == min(found.rates.values())


@pytest.mark.parametrize(("end", "ops"), [(KeyboardInterrupt, []), (DragomanError, ["stop_listening"])])
def test_ctrl_c_does_not_wait_for_the_hosts(sessions, monkeypatch, end, ops):
    called: list[str] = []

    def fail(*_) -> None:
        raise end("x")

    monkeypatch.setattr(routes, "_measure_one", fail)
    monkeypatch.setattr(routes, "call_all", lambda _, op: called.append(op))
    with pytest.raises(end):
        measure(sessions, [loopback(1, 2, 3)])
    assert called == ops


def test_an_address_that_is_not_there_is_named(sessions):
    """192.0.2.0/24 is nobody's: the host cannot listen there."""
    facts = [session.call("facts") for session in sessions]
    facts[1] = {**facts[1], "addresses": [{"interface": "lo", "address": "192.0.2.77", "netmask": "0.0.0.0"}]}
    with pytest.raises(DragomanError, match=r"b cannot listen on 192\.0\.2\.77") as raised:
        find_network(sessions, facts, "lo", None, print)
    assert "firewall" in raised.value.hint


def test_hosts_without_a_common_network(sessions):
    facts = [session.call("facts") for session in sessions]
    for number, each in enumerate(facts):
        each["addresses"] = [{"interface": "eth0", "address": f"198.51.{number}.5", "netmask": "255.255.255.0"}]
    with pytest.raises(DragomanError, match="the hosts share no network") as raised:
        find_network(sessions, facts, None, None, print)
    assert "b has eth0 198.51.1.5/24" in raised.value.message
