"""The network card that carries the exchange: its name, what its link claims to run at, and what has left it."""

import os
from pathlib import Path

import psutil

CARDS = Path("/sys/class/net")


def exchange_card() -> str | None:
    """The card that the launcher named to gloo and nccl."""
    return os.environ.get("GLOO_SOCKET_IFNAME") or os.environ.get("NCCL_SOCKET_IFNAME")


def card_speed(name: str) -> int | None:
    """Bits per second by the driver's word; None where it gives none, as software cards do whose number is made up."""
    return claimed_speed(name) if (CARDS / name / "device").exists() else None


def claimed_speed(name: str) -> int | None:
    """What any card says, one made by software too. 65,535 is how drivers write that they do not know."""
    stats = psutil.net_if_stats().get(name)
    return stats.speed * 1_000_000 if stats is not None and 0 < stats.speed < 65_535 else None


class CardCounter:
    """Counts what left the card since the last look; silent where no card was named or it has no counter."""

    def __init__(self, is_reader: bool) -> None:
        self._card = exchange_card()
        self._is_reader = is_reader and self._read() is not None
        self._before = self._read() or 0

    def take(self) -> int | None:
        """Bytes since the last call; None where this rank does not read."""
        if not self._is_reader:
            return None
        now = self._read()
        if now is None:
            return None
        sent, self._before = now - self._before, now
        return sent

    def _read(self) -> int | None:
        if self._card is None:
            return None
        counters = psutil.net_io_counters(pernic=True, nowrap=True).get(self._card)
        return None if counters is None else counters.bytes_sent
