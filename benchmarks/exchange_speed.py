"""Steps per second over a slow link, with gradients of Transformer-base size really exchanged between two hosts.

    dragoman lab --hosts 2 --link 100mbit -- python benchmarks/exchange_speed.py --case auto --compute 0.30
    python benchmarks/exchange_speed.py --all            every link and compute time, each in a lab of its own

Compute is emulated by a wait of `--compute` seconds per step. A method that exchanges gradients begins when the wait is
over: all gradients are ready at once, nothing overlaps, which is hard on `dense`. For diloco the arithmetic on the
weights counts as compute too (a GPU does it in about a millisecond, see diloco_arithmetic.py; one core of this machine
in up to a second): its messages have their true sizes and really travel, their contents are zeros. `--arithmetic` does
it all the same, within the wait. Prints one JSON line per case.
"""

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

PORT = 29555
ADDRESS = "10.77.0.1"
BASE_PARAMETERS = 60_900_000
LINKS = ("100mbit", "1gbit", "unlimited")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="auto", help="auto, none, or sync settings as JSON")
    parser.add_argument("--compute", type=float, default=0.30, help="seconds of emulated compute in a step")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--link", default="", help="name of the link, for the record")
    parser.add_argument("--arithmetic", action="store_true", help="diloco: real contents")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if options.all:
        measure_all()
    elif options.rank is None:
        start_both(sys.argv[1:])
    else:
        work(options)


def measure_all() -> None:
    dense = json.dumps({"method": "dense"})
    for link in LINKS:
        for case, compute, steps in (
            ("none", 0.30, 20),
            ("none", 0.05, 60),
            ("auto", 0.30, 100),
            ("auto", 0.05, 300),
            (dense, 0.30, 3),
            (dense, 0.05, 3),
            (json.dumps({"method": "dense", "precision": "bf16"}), 0.05, 3),
            (json.dumps({"method": "int8"}), 0.05, 3),
            (json.dumps({"method": "powersgd", "matrix_rank": 4, "dense_steps": 0}), 0.05, 5),
        ):
            inner = [sys.executable, __file__, "--case", case, "--compute", str(compute), "--steps", str(steps)]
            lab = [sys.executable, "-m", "dragoman.cli", "lab", "--hosts", "2", "--link", link, "--"]
            subprocess.run([*lab, *inner, "--link", link], check=True)


def start_both(arguments: list[str]) -> None:
    """This process is host a; the same program starts on host b over the lab's ssh."""
    command = shlex.join([sys.executable, str(Path(__file__).resolve()), *arguments, "--rank", "1"])
    other = subprocess.Popen([*shlex.split(os.environ["DRAGOMAN_SSH"]), "b", command])
    mine = subprocess.Popen([sys.executable, __file__, *arguments, "--rank", "0"])
    code = mine.wait() or other.wait()
    sys.exit(code)


def work(options: argparse.Namespace) -> None:
    os.environ.update(
        RANK=str(options.rank), WORLD_SIZE="2", LOCAL_RANK="0", GROUP_RANK=str(options.rank), MASTER_ADDR=ADDRESS,
        MASTER_PORT=str(PORT), GLOO_SOCKET_IFNAME="eth0", DRAGOMAN_DEVICE="cpu", OMP_NUM_THREADS="1",
    )  # fmt: skip
    import torch

    from dragoman.config import SyncConfig
    from dragoman.dist.methods import make_sync
    from dragoman.dist.probe import measure_link
    from dragoman.dist.world import open_world
    from dragoman.plan.exchange import Facts, choose

    torch.set_num_threads(1)
    world = open_world()
    bandwidth = raw_bandwidth(options.rank)
    link = measure_link(world)
    flat = base_sized()
    facts = Facts(flat.weights.numel(), 2, 2, options.compute, 0.0, link.bytes_per_second, link.latency_seconds)
    predicted: dict[str, Any] = {}
    if options.case == "auto":
        choice = choose(facts)
        option = choice.option
        settings = {"method": option.method, "precision": option.precision, "every_steps": option.every_steps}
        predicted = {"choice": option.name, "predicted_waiting_seconds": round(choice.waiting_seconds, 4)}
    else:
        settings = {} if options.case == "none" else json.loads(options.case)
    config = SyncConfig.model_validate({**settings, "replica": "host"})
    sync = None if options.case == "none" else make_sync(config, world, flat)
    if config.method == "diloco" and not options.arithmetic:
        sync = wire_only(world, flat, config)
    if sync is not None:
        sync.load_state({})
    seconds, exchange = timed_steps(sync, world, config.method == "diloco", options)
    if world.is_first:
        steps = options.steps
        bound = 4 * flat.weights.numel() / bandwidth  # 2 (n - 1) / n = 1 for two hosts
        line = {
            "case": options.case + (" with arithmetic" if options.arithmetic else ""),
            "link": options.link,
            "compute_seconds": options.compute,
            **predicted,
            "steps": steps,
            "step_seconds": round(seconds / steps, 4),
            "steps_per_second": round(steps / seconds, 3),
            "share_of_compute_only": round(options.compute * steps / seconds, 3),
            "exchange_seconds": round(exchange / steps, 4),
            "sent_bytes_per_step": 0 if sync is None else round(sync.sent_bytes / steps),
            "num_parameters": flat.weights.numel(),
            "measured_bytes_per_second": round(bandwidth),
            "probed": asdict(link),
            "dense_bound_seconds": round(bound, 3),
        }
        print(json.dumps(line), flush=True)
    world.close()


def wire_only(world: Any, flat: Any, config: Any) -> Any:
    """Diloco's messages and waits, without the arithmetic that a device would do."""
    import torch

    from dragoman.dist.diloco import DilocoSync
    from dragoman.plan.payload import encoded_bytes

    nothing = torch.zeros(0)

    class WireOnly(DilocoSync):
        def _pack(self, part: slice) -> tuple[Any, Any]:
            num_bytes = encoded_bytes(part.stop - part.start, self._precision)
            return torch.zeros(num_bytes, dtype=torch.uint8), nothing

        def _mean(self, payloads: Any, like: Any) -> Any:
            return nothing

        def _apply(self, part: slice, flight: Any) -> None:
            pass

    return WireOnly(world, flat, config, "sign" if config.precision == "auto" else config.precision)


def base_sized() -> Any:
    """Transformer-base's own parameters: thin factors and buckets see the real shapes."""
    from dragoman.config import ModelConfig
    from dragoman.model.flat import FlatModel
    from dragoman.model.transformer import Transformer

    return FlatModel(Transformer(ModelConfig(), 32_768))  # type: ignore[call-arg]


def timed_steps(sync: Any, world: Any, is_background: bool, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds of all steps, and of them those spent in the exchange after the compute."""
    import torch

    world.any(False)
    start = time.perf_counter()
    exchange = 0.0
    for step in range(1, options.steps + 1):
        step_start = time.perf_counter()
        totals = torch.zeros(5, dtype=torch.float64)
        if sync is not None and is_background:
            sync.advance(step, totals)
        time.sleep(max(0.0, options.compute - (time.perf_counter() - step_start)))
        if sync is not None and not is_background:
            begin = time.perf_counter()
            sync.exchange(1, 2)
            exchange += time.perf_counter() - begin
            sync.advance(step, totals)
    if sync is not None:
        sync.settle()
    return time.perf_counter() - start, exchange


def raw_bandwidth(rank: int, seconds: float = 2.0) -> float:
    """Bytes per second of plain TCP, both ways at once: what the link gives to anybody."""
    if rank == 0:
        with socket.create_server((ADDRESS, PORT + 1)) as server:
            connection, _ = server.accept()
    else:
        connection = connect_patiently()
    received = 0
    block = bytes(65536)

    def send() -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    start = time.perf_counter()
    sender.start()
    while data := connection.recv(1 << 20):
        received += len(data)
    rate = received / (time.perf_counter() - start)
    sender.join()
    connection.close()
    return rate


def connect_patiently() -> socket.socket:
    for _ in range(100):
        try:
            return socket.create_connection((ADDRESS, PORT + 1), timeout=30)
        except OSError:
            time.sleep(0.1)
    raise SystemExit("host a does not answer")


if __name__ == "__main__":
    main()
