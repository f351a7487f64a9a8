"""`dragoman doctor` here and on stand-in hosts: mistakes, exit codes, the profile, and hosts that do not answer."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from command_line import changes
from dragoman.commands import doctor, doctor_hosts
from dragoman.commands.doctor import conclude
from dragoman.commands.doctor_hosts import see_hosts
from dragoman.commands.doctor_round import Round, Wish
from dragoman.diagnose.preflight.checks import GpuFacts, HostFacts, facts_from
from dragoman.launch.hosts import checkup
from dragoman.launch.hosts.hosts import read_hosts
from dragoman.launch.hosts.package import versions
from dragoman.recipe import load_recipe
from dragoman.run.promise import ComputeProfile, Profile, read_promise
from small_runs import dragoman_here, tiny_recipe
from stand_in_hosts import stand_in_hosts

NO_WISH = Wish(None, None, None, None, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "d"), "--data means nothing without a recipe"),
        (("--subnet", "10.0.0.0/8"), "--subnet means nothing without --hosts"),
        (("tinny",), "there is no recipe 'tinny'"),
        (("tiny", "--data", "nowhere"), "nowhere"),
        (("--out", "nowhere/p.json"), "there is no folder"),
        (("--out", "."), "is a folder"),
        (("--out", "/proc/p.json"), "cannot write to /proc"),
        (("--hosts", "a,,b"), "an empty name"),
        (("--hosts", "a,b", "--subnet", "x"), "is no IPv4 subnet"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert dragoman_here(monkeypatch, "doctor", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error
    assert not (tmp_path / "profile.json").exists()


def test_a_plain_machine_is_well_and_a_recipe_is_timed(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert dragoman_here(monkeypatch, "doctor", "phrasebook", *changes()) == 0
    shown = capsys.readouterr().out
    assert "speed of the disk" in shown and "target tokens/s" in shown and "steps/s" in shown
    assert "4 microbatches of 100 target tokens" in shown
    profile = read_promise(tmp_path / "profile.json", Profile)
    assert profile.compute is not None and profile.compute.forward_seconds > 0
    assert profile.link is None
    assert not [check for check in profile.checks if check["level"] == "hurts"]
    assert profile.hosts[0].disk_bytes_per_second


def test_how_a_step_is_computed_is_shown_and_in_the_json(monkeypatch, capsys, tmp_path):
    for recompute, words in (("true", "recomputed on the way back"), ("auto", "kept")):
        command = ("doctor", "phrasebook", *changes(f"train.recompute={recompute}", "batch.num_microbatches=2"))
        assert dragoman_here(monkeypatch, *command, "--out", tmp_path / "p.json") == 0
        rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
        assert ["activations", words] in [[part.strip() for part in row] for row in rows]
        compute = json.loads((tmp_path / "p.json").read_text())["compute"]
        assert (compute["num_microbatches"], compute["recomputes"]) == (2, recompute == "true")


def test_memory_is_checked_as_a_step_is_computed():
    recipe = load_recipe("big")
    timed = ComputeProfile("", "H200", "bf16", 0, 2, 0.1, 0.2, 0.01, 1, kernels="fused")
    found = SimpleNamespace(ranks={"a": 1}, hosts=[])
    kept, recomputed = (
        doctor._needs(found, recipe, replace(timed, recomputes=recomputes)).rank_bytes for recomputes in (False, True)
    )
    assert recomputed < 0.6 * kept


def test_json_is_the_profile_and_nothing_else(monkeypatch, capsys, tmp_path):
    assert dragoman_here(monkeypatch, "doctor", "--json", "--out", tmp_path / "p.json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "p.json").read_text())
    assert {check["code"] for check in printed["checks"]} >= {"versions", "disk-room", "memory"}


def test_a_check_that_hurts_is_exit_code_1(monkeypatch, capsys, tmp_path):
    full = {**checkup.checkup("."), "disk_free_bytes": 1_000}
    monkeypatch.setattr(checkup, "checkup", lambda _: full)
    assert dragoman_here(monkeypatch, "doctor", "--out", tmp_path / "p.json") == 1
    captured = capsys.readouterr()
    assert "this would hurt the run: disk-room" in captured.err
    assert "make room" in captured.out


def test_hosts_that_do_not_answer_or_are_one_machine_are_not_measured(monkeypatch, tmp_path):
    stand_in_hosts(tmp_path, monkeypatch, "a", "b")
    monkeypatch.setattr(doctor_hosts, "measure_hosts", lambda *_: pytest.fail("ranks were started"))
    found = see_hosts(NO_WISH, read_hosts("a,nobody"), lambda _: None)
    (check,) = found.checks
    assert (check.code, check.level, check.host) == ("reachable", "hurts", "nobody")
    assert "does not resolve" in check.evidence
    path = tmp_path / "b" / "facts.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "machine_identity": ["a"]}))
    found = see_hosts(NO_WISH, read_hosts("a,b"), lambda _: None)
    _, checks, _ = conclude(found, None)
    assert "same-machine" in {check.code for check in checks if check.level == "hurts"}


def test_ranks_of_two_hosts_measure_the_link(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAGOMAN_MEASURE_SECONDS", "5")  # in less, a busy machine leaves single ways out
    homes = stand_in_hosts(tmp_path, monkeypatch, "a", "b")
    said: list[str] = []
    found = see_hosts(NO_WISH, read_hosts("a,b"), said.append)
    profile, checks, outlook = conclude(found, None)
    assert found.checks == [] and outlook is None
    assert profile.link is not None and profile.link.bytes_per_second > 1e7
    assert [host.name for host in profile.hosts] == ["a", "b"]
    assert "link: each way alone" in said
    assert {check.code for check in checks} >= {"clock-skew", "network", "link-sum", "latency"}
    assert not list(homes.glob("*/.cache/dragoman/doctor-*")), "nothing is left"


def test_a_host_with_other_code_is_named_and_no_more_is_asked_of_it(monkeypatch, tmp_path):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    monkeypatch.setattr("dragoman.launch.hosts.package.versions", lambda: {**versions(), "code": "other"})
    found = see_hosts(NO_WISH, read_hosts("a"), lambda _: None)
    assert found.hosts[0].num_cores == 0 and found.measured is None
    assert {check.code for check in conclude(found, None)[1] if check.level == "hurts"} == {"versions"}


def test_where_nobody_measured_the_gpus_say_how_a_step_would_be_cut():
    """And where nothing fits, the check of memory says so, among the others."""

    def verdict(total_bytes: int, recipe: str) -> str:
        gpu = GpuFacts(0, "NVIDIA L4", memory_total_bytes=total_bytes, memory_used_bytes=0)
        facts = replace(facts_from(checkup.checkup(".")), gpus=(gpu,))
        checks = conclude(Round([facts], {facts.name: 1}), load_recipe(recipe))[1]
        return next(check.level for check in checks if check.code == "gpu-memory")

    assert verdict(24 * 10**9, "big") == "ok"
    assert verdict(9 * 10**9, "big") == "ok", "in smaller microbatches"
    assert verdict(2 * 10**9, "big") == "hurts"


def test_memory_and_disk_are_judged_by_the_recipe():
    facts = replace(facts_from(checkup.checkup(".")), memory_free_bytes=1_000_000)
    found = Round([facts], {facts.name: 1})
    assert "memory" in {check.code for check in conclude(found, tiny_recipe())[1] if check.level == "hurts"}
    assert isinstance(facts, HostFacts)
