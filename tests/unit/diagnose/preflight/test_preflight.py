"""Every check: silent on a healthy machine, and right about the illness it is for."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.diagnose.preflight.checks import CardFacts, Check, GpuFacts, HostFacts, Needs, facts_from, worst
from dragoman.diagnose.preflight.gpus import check_gpus
from dragoman.diagnose.preflight.hosts import check_hosts, check_together
from dragoman.diagnose.preflight.link import (
    Outlook,
    Route,
    check_devices,
    check_link,
    check_outlook,
    check_route,
    outlook_of,
)
from dragoman.recipe import load_recipe
from dragoman.run.promise import ComputeProfile, HostProfile, LinkProfile, PairSpeed, Profile, StepSplit

VERSIONS = {"dragoman": "0.1", "code": "abc", "torch": "2.13.0", "python": "3.11"}
GPU = GpuFacts(0, "NVIDIA H200", 140 << 30, 0, 0, 700.0, 700.0, 1_980, None, 0)
CARD = CardFacts("eth0", "10.0.0.1", 1_000_000_000)
HEALTHY = HostFacts(
    name="a", versions=VERSIONS, identity=("1",), hostname="a", hostname_addresses=("10.0.0.1",), cpu="x", num_cores=8,
    cpu_busy=0.02, memory_bytes=64 << 30, memory_free_bytes=60 << 30, folder="/runs", disk_free_bytes=500 << 30,
    disk_bytes_per_second=800e6, max_open_files=20_000, max_locked_bytes=8 << 20, cards=(CARD,),
)  # fmt: skip
OTHER = replace(HEALTHY, name="b", identity=("2",), hostname="b")
NEEDS = Needs(700_000_000, 5_600_000_000, 4_000_000_000, {"a": 1, "b": 1})
FAST = 118e6


def link_of(there: float = FAST, back: float = FAST, both: float = FAST, latency: float = 0.0003) -> LinkProfile:
    pairs = (PairSpeed("a", "b", there, both), PairSpeed("b", "a", back, both))
    return LinkProfile(min(there, back, both), latency, min(there, back), {"a": "eth0", "b": "eth0"}, {}, pairs)


def checks_of(host: HostFacts, needs: Needs = NEEDS) -> list[Check]:
    hosts = [host, OTHER]
    return [*check_together(hosts, VERSIONS), *check_gpus(hosts, needs), *check_hosts(hosts, needs)]


def only(checks: list[Check]) -> Check:
    (found,) = [check for check in checks if check.level != "ok"]
    return found


def test_healthy_machines_raise_no_alarm():
    gpus = [replace(host, gpus=(GPU,)) for host in (HEALTHY, OTHER)]
    route = Route("10.0.0.0/24", {"a": CARD, "b": CARD}, is_private=True, is_wanted=False)
    checks = [
        *checks_of(HEALTHY),
        *check_gpus(gpus, NEEDS),
        *check_route(route),
        *check_link(link_of(), [HEALTHY, OTHER]),
    ]
    assert worst(checks) == "ok"
    assert {check.code for check in checks} >= {"versions", "gpu-clocks", "disk-speed", "link-sum", "public-address"}
    assert all(check.evidence and not check.advice for check in checks)


@pytest.mark.parametrize(
    ("changes", "code", "level", "words"),
    [
        ({"versions": {**VERSIONS, "torch": "2.11.0"}}, "versions", "hurts", "torch 2.13.0, not 2.11.0"),
        ({"versions": {**VERSIONS, "code": "def"}}, "versions", "hurts", "other code"),
        ({"versions": {**VERSIONS, "torch": ""}}, "versions", "hurts", "torch is not installed"),
        ({"identity": ("2",)}, "same-machine", "hurts", "b is the same machine as a"),
        ({"clock_ahead_seconds": 2.0}, "clock-skew", "note", "s ahead of b"),
        ({"clock_ahead_seconds": -40.0}, "clock-skew", "hurts", "b is 40 s ahead of a"),
        ({"memory_free_bytes": 3 << 30}, "memory", "hurts", "needs about 4 GB"),
        ({"memory_free_bytes": 5 << 30}, "memory", "note", "5.37 GB of 68.7 GB free"),
        ({"swap_used_bytes": 2 << 30}, "swap", "note", "2.15 GB in use"),
        ({"cpu_busy": 0.6}, "cpu-busy", "note", "60 % taken"),
        ({"disk_free_bytes": 5 << 30}, "disk-room", "hurts", "keeps about 5.6 GB"),
        ({"disk_bytes_per_second": 40e6}, "disk-speed", "note", "takes 18 s"),
        ({"disk_bytes_per_second": 5e6}, "disk-speed", "hurts", "takes 2 min 20 s"),
        ({"max_open_files": 512}, "limits", "note", "512 files"),
        ({"max_open_files": 100}, "limits", "hurts", "100 files"),
        ({"has_infiniband": True}, "limits", "note", "lock 8.39 MB"),
        ({"hostname_addresses": ("127.0.1.1",)}, "name-resolution", "note", "a is 127.0.1.1 on itself"),
        ({"hostname_addresses": ()}, "name-resolution", "note", "does not resolve"),
        ({"port_problem": "port 29400 is taken"}, "port", "note", "taken"),
        ({"gpu_problem": "NVML: Driver Not Loaded"}, "gpu-present", "hurts", "Driver Not Loaded"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_host_is_said_once(changes, code, level, words):
    checks = [check for check in checks_of(replace(HEALTHY, **changes)) if check.level != "ok"]
    assert {(check.code, check.level) for check in checks} == {(code, level)}
    assert any(words in check.evidence for check in checks), [check.evidence for check in checks]
    assert all(check.advice for check in checks)


def test_a_disk_that_refuses_hurts():
    host = replace(HEALTHY, disk_free_bytes=None, disk_bytes_per_second=None, disk_problem="Permission denied")
    levels = {check.code: check.level for check in checks_of(host) if check.level != "ok"}
    assert levels == {"disk-room": "hurts", "disk-speed": "note"}


def test_one_host_needs_no_name_and_no_clock():
    alone = replace(HEALTHY, hostname_addresses=("127.0.0.1",), clock_ahead_seconds=100.0)
    assert worst([*check_together([alone], VERSIONS), *check_hosts([alone], NEEDS)]) == "ok"


def test_a_clock_within_the_error_of_its_reading_is_right():
    host = replace(HEALTHY, clock_ahead_seconds=1.4, clock_error_seconds=0.5)
    assert worst(check_together([host, OTHER], VERSIONS)) == "ok"


@pytest.mark.parametrize(
    ("changes", "code", "level", "words"),
    [
        ({"num_ecc_errors": 3}, "gpu-health", "hurts", "3 uncorrected"),
        ({"needs_reset": True}, "gpu-health", "hurts", "reset"),
        ({"power_limit_watts": 400.0}, "gpu-clocks", "note", "400 W of 700 W"),
        ({"clock_limit_mhz": 1_000}, "gpu-clocks", "note", "1000 MHz of 1980 MHz"),
        ({"throttle_reasons": ("heat",)}, "gpu-clocks", "hurts", "slowed down by heat"),
        ({"memory_used_bytes": 30 << 30, "num_processes": 2}, "gpu-memory", "note", "taken by 2 processes"),
        ({"memory_used_bytes": 139 << 30}, "gpu-memory", "hurts", "training needs about 4 GB"),
    ],
)
def test_what_is_wrong_with_a_gpu(changes, code, level, words):
    check = only(check_gpus([replace(HEALTHY, gpus=(replace(GPU, **changes),))], NEEDS))
    assert (check.code, check.level) == (code, level)
    assert words in check.evidence


def test_gpus_that_differ_or_are_too_few_are_noted():
    pair = [replace(HEALTHY, gpus=(GPU,)), replace(OTHER, gpus=(replace(GPU, name="NVIDIA A10"),))]
    assert only(check_gpus(pair, NEEDS)).code == "gpus-alike"
    assert "will share" in only(check_gpus(pair[:1], replace(NEEDS, ranks={"a": 2}))).evidence
    assert only(check_devices([pair[0]], {"a": "cpu"})).code == "gpu-unused"
    assert not check_devices([pair[0]], {"a": "cuda"})


@pytest.mark.parametrize(
    ("link", "code", "level", "words"),
    [
        (
            link_of(11.75e6, 11.75e6, 11.6e6),
            "link-slower-than-card",
            "hurts",
            "says 1 Gb/s, carries 11.8 MB/s (94 Mb/s)",
        ),
        (link_of(118e6, 30e6, 30e6), "link-one-way", "hurts", "b to a 30 MB/s"),
        (link_of(118e6, 80e6, 80e6), "link-one-way", "note", "b to a 80 MB/s"),
        (link_of(both=60e6), "link-sum", "hurts", "60 MB/s (480 Mb/s) each way at once, 118 MB/s (944 Mb/s) alone"),
        (link_of(both=90e6), "link-sum", "note", "90 MB/s"),
        (link_of(latency=0.02), "latency", "note", "20 ms"),
    ],
)
def test_what_is_wrong_with_a_link(link, code, level, words):
    checks = [check for check in check_link(link, [HEALTHY, OTHER]) if check.level != "ok"]
    assert {(check.code, check.level) for check in checks} == {(code, level)}
    assert words in checks[0].evidence


def test_a_card_is_not_blamed_for_the_slower_card_of_its_peer():
    slow = replace(OTHER, cards=(replace(CARD, bits_per_second=100_000_000),))
    assert worst(check_link(link_of(11.75e6, 11.75e6, 11.6e6), [HEALTHY, slow])) == "ok"
    checks = check_route(Route("10.0.0.0/24", {"a": CARD, "b": slow.cards[0]}, is_private=True, is_wanted=False))
    assert only(checks).code == "card-slow"


def test_a_virtual_or_silent_card_is_only_worth_a_note():
    slow = link_of(11.75e6, 11.75e6, 11.6e6)
    for card in (replace(CARD, is_virtual=True), replace(CARD, bits_per_second=None)):
        hosts = [replace(host, cards=(card,)) for host in (HEALTHY, OTHER)]
        assert worst(check_link(slow, hosts)) == "note"


def test_processors_that_share_a_fast_link_are_no_port():
    assert worst(check_link(link_of(2e9, 2e9, 1e9), [replace(host, cards=()) for host in (HEALTHY, OTHER)])) == "note"


@pytest.mark.parametrize(("is_wanted", "level"), [(False, "hurts"), (True, "note")])
def test_a_public_address(is_wanted, level):
    card = replace(CARD, address="203.0.113.7")
    check = only(check_route(Route("ssh", {"a": card, "b": card}, is_private=False, is_wanted=is_wanted)))
    assert (check.code, check.level) == ("public-address", level)


@pytest.mark.parametrize(("waiting", "level"), [(0.01, "ok"), (0.5, "note"), (2.0, "hurts")])
def test_a_step_that_mostly_waits(waiting, level):
    outlook = Outlook("dense fp32", StepSplit(0.9, waiting, 0.1), 365_000_000)
    (check,) = check_outlook(outlook, 2)
    assert (check.code, check.level) == ("network-will-limit", level)
    assert "365 MB a step" in check.evidence
    assert check_outlook(outlook, 1) == []


def test_the_outlook_is_the_plans():
    recipe = load_recipe("base", ["sync.method=dense"])
    compute = ComputeProfile("x", "cpu", "fp32", 60_900_000, 8, 0.02, 0.04, 0.01, 1, target_tokens=25_600)
    profile = Profile(0.0, (HostProfile("a"), HostProfile("b")), link_of(12e6, 12e6, 11.7e6), compute)
    outlook = outlook_of(recipe, profile)
    assert outlook is not None
    assert outlook.method == "dense fp32"
    assert outlook.split.waiting_share > 0.9
    assert 15 < outlook.split.total_seconds < 30
    assert outlook_of(recipe, replace(profile, compute=None)) is None


def test_facts_and_checks_cross_as_json():
    from dataclasses import asdict

    host = replace(HEALTHY, gpus=(GPU,))
    assert facts_from(asdict(host)) == host
    (first, *_) = check_together([HEALTHY], VERSIONS)
    assert first.to_dict()["link"] == "docs/checks.md#versions"


def test_every_code_has_its_section():
    root = Path(__file__).parents[4]
    sources = [*root.glob("src/dragoman/diagnose/preflight/*.py"), *root.glob("src/dragoman/commands/doctor*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    codes = set(re.findall(r'Check\(\s*"([a-z-]+)"', text))
    sections = set(
        re.findall(r"^## ([a-z-]+)$", (root / "docs" / "checks.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert len(codes) >= 25
    assert codes == sections
