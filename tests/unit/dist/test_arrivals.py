"""Sums on their way to the host: some steps late where the device runs ahead, each once, in order."""

import torch

from dragoman.dist import sync
from dragoman.dist.landing import landing
from dragoman.dist.sync import Arrivals

CPU = torch.device("cpu")


def test_on_a_cpu_nothing_is_late():
    arrivals = Arrivals(CPU)
    assert arrivals.add(torch.tensor([1.0, 2.0])) == [[1.0, 2.0]]
    assert arrivals.rest() == []


def test_a_gpu_is_read_two_steps_behind_and_whole_at_the_end():
    arrivals = Arrivals(torch.device("cuda"))  # only named: the sums themselves are on the CPU here
    given = [arrivals.add(torch.tensor([float(step)])) for step in range(1, 6)]
    assert sync.STEPS_LATE == 2
    assert given == [[], [], [[1.0]], [[2.0]], [[3.0]]]
    assert arrivals.rest() == [[4.0], [5.0]]
    assert arrivals.rest() == []


def test_what_has_set_out_does_not_change_on_the_way():
    totals = torch.tensor([1.0])
    arrivals = Arrivals(torch.device("cuda"))
    arrivals.add(totals)
    landed = landing(totals)
    totals += 5
    assert arrivals.rest() == [[1.0]]
    assert landed.tolist() == [1.0]
