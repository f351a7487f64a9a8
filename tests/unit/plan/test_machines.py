"""GPUs, machines and links by the names that drivers and people give them."""

import pytest

from dragoman.errors import DragomanError
from dragoman.plan.gpus import GPUS, find_gpu
from dragoman.plan.machines import PAYLOAD_SHARE, parse_link, parse_machines

DRIVER_NAMES = {
    "Tesla V100-SXM2-16GB": "V100",
    "Tesla V100-SXM2-32GB": "V100 32GB",
    "Tesla V100-PCIE-16GB": "V100",
    "Tesla P100-PCIE-16GB": "P100",
    "Tesla T4": "T4",
    "NVIDIA A10": "A10",
    "NVIDIA A10G": "A10G",
    "NVIDIA A30": "A30",
    "NVIDIA A40": "A40",
    "NVIDIA A100-SXM4-40GB": "A100 40GB",
    "NVIDIA A100-SXM4-80GB": "A100 80GB",
    "NVIDIA A100 80GB PCIe": "A100 80GB",
    "NVIDIA L4": "L4",
    "NVIDIA L40": "L40",
    "NVIDIA L40S": "L40S",
    "NVIDIA GeForce RTX 2080 Ti": "RTX 2080 Ti",
    "NVIDIA GeForce RTX 3090": "RTX 3090",
    "NVIDIA GeForce RTX 4080": "RTX 4080",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA GeForce RTX 5090": "RTX 5090",
    "NVIDIA RTX A4000": "RTX A4000",
    "NVIDIA RTX A5000": "RTX A5000",
    "NVIDIA RTX A6000": "RTX A6000",
    "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "H100 NVL",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H200": "H200",
    "NVIDIA B200": "B200",
    "h100": "H100",
    "rtx4090": "RTX 4090",
    "a100-80": "A100 80GB",
}


@pytest.mark.parametrize(("name", "expected"), DRIVER_NAMES.items())
def test_driver_names_find_their_card(name, expected):
    assert find_gpu(name).name == expected


def test_every_card_is_found_by_its_own_name_and_is_plausible():
    assert set(DRIVER_NAMES.values()) == {gpu.name for gpu in GPUS}
    for gpu in GPUS:
        assert find_gpu(gpu.name) == gpu
        assert gpu.fp32_flops <= gpu.half_flops * 1.01
        assert 0.02 < gpu.half_efficiency[0] < gpu.half_efficiency[1] < 0.6


def test_the_measured_step_of_an_h200_is_in_the_table():
    """24,738 target tokens of 366 MFLOP in 24.4 ms."""
    gpu = find_gpu("H200")
    assert gpu.half_flops * gpu.half_efficiency[1] == pytest.approx(24_738 * 366e6 / 0.0244, rel=0.03)


def test_an_unknown_card_names_near_ones():
    with pytest.raises(DragomanError, match=r"V1000.*did you mean V100") as error:
        find_gpu("V1000")
    assert "doctor" in error.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x2:V100", (2, 4, "V100")),
        ("4x1:a100", (4, 4, "A100 40GB")),
        ("1x8:NVIDIA H100 80GB HBM3", (1, 8, "H100")),
        ("2xcpu", (2, 2, None)),
        ("3 x cpu:16", (3, 3, None)),
    ],
)
def test_machines(text, expected):
    machines = parse_machines(text)
    name = machines.gpu.name if machines.gpu else None
    assert (machines.placement.num_hosts, machines.placement.num_ranks, name) == expected


def test_cores():
    assert parse_machines("2xcpu:16").num_cores == 16


@pytest.mark.parametrize(
    "text", ["", "2x2", "V100", "2x2:", "0x1:V100", "2x0:V100", "2x999:V100", "2xcpu:0", "-1x1:T4"]
)
def test_what_are_no_machines(text):
    with pytest.raises(DragomanError):
        parse_machines(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100mbit", 12.5e6 * PAYLOAD_SHARE),
        ("1gbit", 125e6 * PAYLOAD_SHARE),
        ("1 Gb/s", 125e6 * PAYLOAD_SHARE),
        ("1.5Gbit/s", 187.5e6 * PAYLOAD_SHARE),
        ("221MB/s", 221e6),
        ("500kbit", 62_500 * PAYLOAD_SHARE),
    ],
)
def test_a_port_is_sold_in_bits_and_measured_in_bytes(text, expected):
    assert parse_link(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "100", "1gb", "fast", "-1gbit", "0mbit", "unlimited", "1tbit"])
def test_what_is_no_link(text):
    with pytest.raises(DragomanError):
        parse_link(text)
