"""What this host does while it trains, once a second, from a thread of its own. Never raises into training.

A run that ends within its first second has one sample too.
"""

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from dragoman.dist.card import card_speed
from dragoman.run.samples import CardSample, SystemSample
from dragoman.train.nvml import GpuReader

EVERY_SECONDS = 1.0
# More than any card of today: a counter that jumps by more was reset or misread.
MOST_BYTES_PER_SECOND = 100e9
# A sample's interval and the counters are read some milliseconds apart.
CARD_TOLERANCE = 1.25


class Sampler:
    """Reads counters and hands one sample a second to `write`."""

    def __init__(self, attempt: int, host: str, folder: Path, write: Callable[[SystemSample], None]) -> None:
        self._attempt = attempt
        self._host = host
        self._folder = folder
        self._write = write
        self._ending = threading.Event()
        self._gpus = GpuReader()
        self._speeds = {name: card_speed(name) for name in psutil.net_if_stats()}
        self._thread = threading.Thread(target=self._work, name="sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _work(self) -> None:
        psutil.cpu_percent()  # the first call only starts the interval
        before, counters = time.monotonic(), _counters()
        ending = has_written = False
        while not ending:
            ending = self._ending.wait(EVERY_SECONDS)
            if ending and has_written:
                break
            try:
                now, fresh = time.monotonic(), _counters()
                self._write(self._sample(now - before, counters, fresh))
                before, counters, has_written = now, fresh, True
            except Exception:  # a driver that stumbles: the next second may be better
                continue

    def _sample(self, seconds: float, old: Mapping[str, Any], new: Mapping[str, Any]) -> SystemSample:
        cards, num_dropped = card_samples(old["cards"], new["cards"], self._speeds, seconds)
        disk, num_bad = _disk_bytes(old["disk"], new["disk"], seconds)
        gpus, num_odd = self._gpus.read()
        memory = psutil.virtual_memory()
        return SystemSample(
            attempt=self._attempt,
            time=time.time(),
            host=self._host,
            interval_seconds=round(seconds, 4),
            cpu_busy=psutil.cpu_percent() / 100,
            memory_used_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            disk_read_bytes=disk[0],
            disk_written_bytes=disk[1],
            disk_free_bytes=shutil.disk_usage(self._folder).free,
            cards=tuple(cards),
            gpus=tuple(gpus),
            num_dropped=num_dropped + num_bad + num_odd,
        )


def _counters() -> dict[str, Any]:
    # Not psutil's `nowrap`: it hides a reset counter, and we want to see and count it.
    return {"cards": psutil.net_io_counters(pernic=True, nowrap=False), "disk": psutil.disk_io_counters(nowrap=False)}


def card_samples(
    old: Mapping[str, Any], new: Mapping[str, Any], speeds: Mapping[str, int | None], seconds: float
) -> tuple[list[CardSample], int]:
    """Every card that was there before, and how many of their readings cannot be true and were left out."""
    samples: list[CardSample] = []
    num_dropped = 0
    for name, after in new.items():
        if name == "lo" or name not in old or not any(after[:2]):
            continue  # a card that never carried anything is no news
        change = [now - then for now, then in zip(after, old[name], strict=True)]
        speed = speeds.get(name)
        most = MOST_BYTES_PER_SECOND if speed is None else CARD_TOLERANCE * speed / 8
        if min(change) < 0 or max(change[:2]) > most * seconds:
            num_dropped += 1
            continue
        samples.append(CardSample(name, *change[:4], num_drops=sum(change[4:]), bits_per_second=speed))
    return samples, num_dropped


def _disk_bytes(old: Any, new: Any, seconds: float) -> tuple[tuple[int | None, int | None], int]:
    """Read and written by all disks; nothing where the system does not say."""
    if old is None or new is None:
        return (None, None), 0
    change = (new.read_bytes - old.read_bytes, new.write_bytes - old.write_bytes)
    if min(change) < 0 or max(change) > MOST_BYTES_PER_SECOND * seconds:
        return (None, None), 1
    return change, 0
