"""What a lab is to be, and the lines and files that make it so. Nothing here needs Linux or root."""

import sys
from dataclasses import replace

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.lab import files, lab, switch, wiring
from dragoman.launch.lab.lab import Lab
from dragoman.launch.lab.link import parse_link
from dragoman.launch.lab.plan import LabPlan, plan_hosts, share_out
from dragoman.launch.lab.record import LabRecord, read_record, write_record
from dragoman.launch.lab.requirements import denied

RECORD = LabRecord(7, "pid:[1]", {"a": 2, "b": 3}, {"a": (0,), "b": ()}, "/home/me", "me", "/bin/sh")


def plan(link="100mbit", num_hosts=2, links_of=None, public=None, is_sum=False, **changes) -> LabPlan:
    others = {name: parse_link(speed) for name, speed in (links_of or {}).items()}
    hosts = plan_hosts(num_hosts, parse_link(link, is_sum), others, public and parse_link(public), [0, 1, 2, 3])
    made = LabPlan(
        folder="/tmp/lab",
        hosts=hosts,
        delay_seconds=0.0,
        working_folder="/work",
        home="/home/me",
        user="me",
        shell="/bin/sh",
        own_folders=("/work/runs",),
        has_sshd=True,
        needs_user_namespace=False,
    )
    return replace(made, **changes)


def test_a_plan_travels_as_json():
    for made in (plan(), plan(public="10mbit", num_hosts=3, links_of={"b": "1gbit/2gbit"}, delay_seconds=0.01)):
        assert LabPlan.from_json(made.to_json()) == made


def test_a_record_is_found_in_the_folder_of_the_lab(tmp_path):
    write_record(tmp_path, RECORD)
    assert read_record(tmp_path) == RECORD


def test_cores_go_to_hosts_or_to_everybody():
    assert share_out([0, 2, 4, 6, 8], 2) == [(0, 2), (4, 6, 8)]
    assert share_out([0, 1], 3) == [(), (), ()]


@pytest.mark.parametrize("num_hosts", [0, -1, 27])
def test_how_many_hosts_there_can_be(num_hosts):
    with pytest.raises(DragomanError, match="hosts cannot be emulated"):
        plan(num_hosts=num_hosts)


@pytest.mark.parametrize("name", ["c", "", "ab"])
def test_a_speed_for_a_host_that_is_not_there(name):
    with pytest.raises(DragomanError, match="--link-of names host"):
        plan(links_of={name: "1mbit"})


def test_names_lead_to_the_last_card():
    assert files.hosts_text(plan()).splitlines() == ["127.0.0.1 localhost", "10.77.0.1 a", "10.77.0.2 b"]
    assert "192.0.2.2 b" in files.hosts_text(plan(public="1gbit"))
    assert "ListenAddress 192.0.2.1:22\n" in files.sshd_config_text(plan(public="1gbit"), plan(public="1gbit").hosts[0])


def test_names_are_asked_of_nobody_outside():
    assert files.nsswitch_text("passwd: files\nhosts: files dns\n") == "passwd: files\nhosts: files\n"
    assert "hosts: files" in files.nsswitch_text("passwd: files")


def test_ssh_is_called_with_what_the_lab_has():
    assert files.ssh_command(plan()) == "ssh -F /tmp/lab/ssh_config"
    assert files.ssh_command(plan(has_sshd=False)) == "/tmp/lab/enter"


def test_each_direction_is_shaped_where_it_is_sent():
    made = plan("100mbit/20mbit", links_of={"b": "unlimited"})
    assert [line.split()[:6] for line in wiring.switch_shaping(made)] == [
        ["qdisc", "add", "dev", "a-eth0", "root", "tbf"]
    ]
    assert "rate 20000000bit" in wiring.switch_shaping(made)[0]
    assert "dev eth0 root tbf rate 100000000bit" in wiring.host_shaping(made.hosts[0])[0]
    assert wiring.host_shaping(made.hosts[1]) == []


def test_a_sum_is_shaped_in_one_place():
    made = plan(is_sum=True)
    assert wiring.host_shaping(made.hosts[0]) == []
    bucket, _, there, back = wiring.switch_shaping(made)[:4]
    assert "dev sum-a-eth0 root tbf" in bucket
    assert [line.split()[4] for line in (there, back)] == ["ingress", "egress"]


def test_device_names_are_short_enough_for_the_kernel():
    made = plan(num_hosts=26, public="1gbit", is_sum=True)
    lines = wiring.switch_links(made, {host.name: 1 for host in made.hosts})
    assert max(len(line.split()[2]) for line in lines) <= 15


def test_with_a_delay_the_cables_are_the_relay():
    pids = {"a": 2, "b": 3}
    assert any("type veth" in line for line in wiring.switch_links(plan(), pids))
    assert not any("type veth" in line for line in wiring.switch_links(plan(delay_seconds=0.01), pids))


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        (plan(), ["2 hosts a, b on a 100 Mb/s link; ssh a, ssh b work inside"]),
        (
            plan("unlimited", links_of={"b": "10mbit"}),
            ["2 hosts a, b on an unlimited link, b on a 10 Mb/s link; ssh a, ssh b work inside"],
        ),
        (
            plan("1gbit", num_hosts=1, delay_seconds=0.01),
            [
                "1 host a on a 1 Gb/s link, 10 ms from host to host; ssh a works inside",
                "a delay is exact on links of up to 200 Mb/s: faster ones may lose speed",
            ],
        ),
    ],
)
def test_a_lab_says_what_it_is(made, lines):
    assert Lab(made, RECORD, ()).describe() == lines


def test_the_caller_stays_first_in_line_for_a_command(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/venv/bin/python")
    environment = Lab(plan(), RECORD, ()).environment({"PATH": "/bin", "MINE": "kept"})
    assert environment == {
        "PATH": "/venv/bin:/bin",
        "MINE": "kept",
        "DRAGOMAN_SSH": "ssh -F /tmp/lab/ssh_config",
        "DRAGOMAN_LAB": "/tmp/lab",
    }


@pytest.mark.parametrize(
    ("does", "said"),
    [("echo no entropy >&2; exit 1", "no entropy"), ("exit 3", "exit code 3"), ("exec sleep 9", "not done after 0 s")],
)
def test_a_key_that_cannot_be_made_is_one_line(tmp_path, monkeypatch, does, said):
    tool = tmp_path / "ssh-keygen"
    tool.write_text(f"#!/bin/sh\n{does}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(lab, "tool_path", lambda _: str(tool))
    monkeypatch.setattr(lab, "_START_SECONDS", 0.3)
    with pytest.raises(DragomanError, match=f"ssh-keygen could not make a key: .*{said}"):
        lab._write_keys(plan(folder=str(tmp_path)))


def test_a_time_that_ran_out_has_words(monkeypatch):
    def late(_):
        raise TimeoutError("timed out")

    def leave(_):
        raise SystemExit

    heard = []
    monkeypatch.setattr(switch, "die_with_parent", lambda: None)
    monkeypatch.setattr(switch, "_make", late)
    monkeypatch.setattr(switch, "report", heard.append)
    monkeypatch.setattr(switch.os, "_exit", leave)
    with pytest.raises(SystemExit):
        switch.be_switch(plan())
    assert heard == [{"error": "timed out", "is_denied": False}]


def test_who_may_not_is_told_a_line_that_works_with_sudo(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/my venv/bin/python")
    monkeypatch.setattr(sys, "argv", ["dragoman", "lab", "--", "sh", "-c", "echo 1"])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    hint = "as root: sudo '/my venv/bin/python' -m dragoman.cli lab -- sh -c 'echo 1'"
    assert denied("unshare").hint == hint
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "--privileged" in denied("unshare").hint
