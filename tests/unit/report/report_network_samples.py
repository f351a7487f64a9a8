"""A made-up run of two hosts with two ranks each on a port left at 100 Mb/s, with samples, profile and prediction."""

import dataclasses
import math
import random
from pathlib import Path

from report_samples import START, sample_eval, sample_manifest, sample_sentences, write_checkpoint

from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.promise import (
    ComputeProfile,
    Cost,
    HostProfile,
    LinkProfile,
    Prediction,
    Profile,
    Stage,
    StepSplit,
    write_promise,
)
from dragoman.run.records import Attempt, Event, Exchange, Host, Manifest, StepRecord, TimingRecord, to_line
from dragoman.run.samples import CardSample, GpuSample, SystemSample
from dragoman.run.writer import append_lines, write_eval_sentences, write_manifest

CAPACITY, SENT, COMPUTE = 11.8e6, 365_000_000, 0.31
TRANSFER = SENT / CAPACITY
STEP = TRANSFER + COMPUTE + 0.05
GPU = "Tesla V100-SXM2-16GB"


def network_manifest() -> Manifest:
    small = sample_manifest(corpora=("europarl_v7", "newscommentary_v11"))
    hosts = tuple(Host(name, "Xeon", 16, 2**37, (GPU, GPU), 2, "eth0", 10**9) for name in "ab")
    return dataclasses.replace(
        small,
        name="port-at-100",
        world_size=4,
        device="cuda",
        num_parameters=60_900_000,
        hosts=hosts,
        attempts=(Attempt(1, START, "dragoman train base --hosts a:2,b:2 --data data --run runs/port-at-100", 4),),
        exchange=Exchange({"method": "dense", "precision": "fp32"}, 2, ["asked for"], {"bytes_per_second": CAPACITY}),
        price_per_hour=14.2,
        currency="$",
    )


def network_profile() -> Profile:
    link = LinkProfile(CAPACITY, 0.0004, CAPACITY, {"a": "eth0", "b": "eth0"}, {"a": 10**9, "b": 10**9})
    compute = ComputeProfile("9c1f4be2a7d0", GPU, "fp32", 60_900_000, 4, 0.1, 0.2, 0.01, 2, 0.05, 15e12, {}, 26_600)
    hosts = tuple(HostProfile(name, "Xeon", 16, 2**37, (GPU, GPU), 2, 7.1) for name in "ab")
    return Profile(START - 10, hosts, link, compute)


def network_prediction(num_steps: int = 2000) -> Prediction:
    split = StepSplit(0.3, 30.9, 0.01)
    train = num_steps * split.total_seconds
    stages = (Stage("push", 60_000.0), Stage("train", train), Stage("evaluate", 300.0), Stage("save", 40.0))
    total = sum(stage.seconds for stage in stages)
    return Prediction(
        START, True, "base", 2, 4, "dense fp32", num_steps, split, 30.0, 32.0, SENT, "60.9 M x 4 x 1.5", CAPACITY,
        SENT / CAPACITY, train, total, stages, 1.0, Cost(machines=14.2 * total / 3600), 14.2,
        single_host_step_seconds=0.62,
    )  # fmt: skip


def write_network_run(path: Path, num_steps: int = 60, sampled_hosts: str = "ab") -> RunFolder:
    """Steps of half a minute, a sample of each host every ten seconds."""
    folder = create_run_folder(path)
    write_manifest(folder, network_manifest())
    write_promise(folder.profile_path, network_profile())
    write_promise(folder.prediction_path, network_prediction())
    draw = random.Random(3)
    moments = [START + 20 + STEP * step for step in range(1, num_steps + 1)]
    append_lines(folder.steps_path, [to_line(_step(i, time, draw)) for i, time in enumerate(moments, 1)])
    for rank in range(4):
        lines = [to_line(_timing(i, rank, time)) for i, time in enumerate(moments, 1)]
        append_lines(folder.timing_path(rank), lines)
    for host in sampled_hosts:
        count = int((moments[-1] - START) // 10)
        append_lines(folder.system_path(host), [to_line(_sample(host, START + 10 * i, draw)) for i in range(count)])
    every = max(1, num_steps // 5)
    for step in range(every, num_steps + 1, every):
        append_lines(folder.evals_path, [to_line(sample_eval(step, 1, moments[step - 1], num_steps))])
        write_eval_sentences(folder, step, "dev", sample_sentences(step, num_steps))
    write_checkpoint(folder, num_steps)
    clocks = Event(1, START, "clocks", 0, {"offsets": {"a": 0.0, "b": 0.001}})
    end = Event(1, moments[-1], "finished", num_steps, {"reason": "max_steps"})
    append_lines(folder.events_path, [to_line(Event(1, START, "started", 0)), to_line(clocks), to_line(end)])
    return folder


def _step(step: int, time: float, draw: random.Random) -> StepRecord:
    nll = 1.2 + 6.5 * math.exp(-step / 20) + draw.gauss(0, 0.03)
    rate = 2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5)  # as the recipe has it
    return StepRecord(1, time, step, nll + 0.5, nll, rate, 0.5 + draw.random(), 24_000, 26_600, 1024, STEP)


def _timing(step: int, rank: int, time: float) -> TimingRecord:
    late = 0.02 if rank == 3 else 0.0
    exchange = TRANSFER + 0.02 - late
    rest = STEP - COMPUTE - late - exchange
    return TimingRecord(
        1, time, step, rank, "ab"[rank // 2], 0.001, 0.1 + late, 0.2, exchange, 0.01, 0.0, 0.0, rest - 0.001, STEP,
        SENT, SENT if rank % 2 == 0 else None, time - exchange - 0.02,
    )  # fmt: skip


def _sample(host: str, time: float, draw: random.Random) -> SystemSample:
    sent, received = (round(10 * CAPACITY * draw.uniform(0.93, 1.0)) for _ in range(2))
    card = CardSample("eth0", sent, received, 80_000, 80_000, 0, 10**9)
    gpus = tuple(
        GpuSample(index, draw.uniform(0.98, 1.0), 14 * 2**30, 16 * 2**30, 70.0, 300.0, 1530, 1530, 41)
        for index in (0, 1)
    )
    return SystemSample(1, time, host, 10.0, draw.uniform(0.05, 0.1), 2**34, 2**37, 0, 0, 2**39, (card,), gpus)
