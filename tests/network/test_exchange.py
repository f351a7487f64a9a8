"""Methods of exchange between two emulated hosts: bytes, a choice that is kept, and disks of their own."""

import json
import sys
from pathlib import Path

import pytest
from emulated import EmulatedHosts

from command_line import changes

# About a million parameters: what the controller sends beside them must not matter.
LARGER = ("model.d_model=128", "model.d_ffn=1024", "model.num_encoder_layers=2", "model.num_decoder_layers=2")
QUICK = ("evaluate.decode=false", "evaluate.train_pairs=0", "evaluate.every_steps=1000", "checkpoint.every_steps=1000")


def train(hosts: EmulatedHosts, data: Path, *settings: str, names: str = "a,b") -> str:
    words = ["train", "phrasebook", "--data", data, "--run", "run", "--hosts", names]
    command = [sys.executable, "-m", "dragoman", *words]
    done = hosts.run_on("a", [*command, *changes(*LARGER, *QUICK, *settings)], timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exchange_of(hosts: EmulatedHosts) -> dict:
    return json.loads((hosts.folder / "run" / "manifest.json").read_text())["exchange"]


@pytest.mark.parametrize(
    "settings",
    [
        ("sync.method=dense", "train.max_steps=12"),
        ("sync.method=dense", "sync.precision=bf16", "train.max_steps=12"),
        ("sync.method=int8", "train.max_steps=20"),
        ("sync.method=powersgd", "sync.dense_steps=0", "sync.matrix_rank=8", "train.max_steps=40"),
        ("sync.method=diloco", "sync.precision=int8", "sync.every_steps=2", "train.max_steps=40"),
    ],
    ids=lambda settings: " ".join(settings[:2]),
)
def test_the_method_and_the_card_count_the_same_bytes(lab_hosts, phrasebook_data, settings):
    hosts = lab_hosts(2, "100mbit")
    train(hosts, phrasebook_data, *settings)
    for rank in (0, 1):
        lines = (hosts.folder / "run" / f"timing.rank-{rank:03d}.jsonl").read_text().splitlines()
        # The first step counts what came before it, the last one the final evaluation and checkpoint.
        records = [json.loads(line) for line in lines][1:-1]
        by_method = sum(record["sent_bytes"] for record in records)
        by_card = sum(record["card_sent_bytes"] for record in records)
        assert by_method > 1_000_000
        assert by_card == pytest.approx(by_method, rel=0.05)


def test_auto_takes_what_the_link_carries_and_keeps_to_it(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "20mbit")
    output = train(hosts, phrasebook_data, "train.max_steps=30", "checkpoint.every_steps=15")
    chosen = exchange_of(hosts)
    assert chosen["settings"]["method"] == "diloco"
    assert chosen["num_hosts"] == 2
    assert 1.5e6 < chosen["measured"]["bytes_per_second"] < 2.6e6
    assert any(reason in output for reason in chosen["reasons"])
    sums = {}
    for host in hosts.names:
        listing = hosts.output_of(
            host, ["sh", "-c", "cd run/checkpoints/step-00000015 && sha256sum weights.safetensors; ls"]
        )
        sums[host] = listing.split()[0]
        assert f"rank-00{'ab'.index(host)}.safetensors" in listing
        assert f"rank-00{1 - 'ab'.index(host)}.safetensors" not in listing, "no shared disk"
    assert sums["a"] == sums["b"], "what is shared is the same on every disk"
    train(hosts, phrasebook_data, "train.max_steps=40")
    assert exchange_of(hosts) == chosen


def test_an_unlimited_link_gets_the_exact_sum(lab_hosts, phrasebook_data):
    """With so much text in a step that a busy machine, which measures a slower link, still hides the exchange."""
    hosts = lab_hosts(2, "unlimited")
    train(hosts, phrasebook_data, "train.max_steps=2", "batch.target_tokens=32768")
    chosen = exchange_of(hosts)["settings"]
    assert (chosen["method"], chosen["precision"]) == ("dense", "fp32")


def test_hosts_are_replicas_whose_ranks_stay_equal(lab_hosts, phrasebook_data):
    hosts = lab_hosts(2, "20mbit")
    settings = ("sync.method=diloco", "train.max_steps=12", "checkpoint.every_steps=10")
    train(hosts, phrasebook_data, *settings, names="a,b:2")
    folder = "run/checkpoints/step-00000010"
    weigh = (
        "import sys, torch; from safetensors.torch import load_file as load; "
        f"first, second = (load(f'{folder}/rank-00{{rank}}.safetensors')['weights'] for rank in (1, 2)); "
        "sys.exit(not torch.equal(first, second))"
    )
    hosts.output_of("b", [sys.executable, "-c", weigh])
    last = [hosts.output_of(host, ["sha256sum", "run/checkpoints/last/weights.safetensors"]) for host in hosts.names]
    assert last[0] == last[1]
    timing = [
        json.loads((hosts.folder / "run" / f"timing.rank-00{rank}.jsonl").read_text().splitlines()[5])
        for rank in (1, 2)
    ]
    assert timing[0]["sent_bytes"] > 10_000, "the first rank of a host talks to the others"
    assert timing[1]["sent_bytes"] == 0
