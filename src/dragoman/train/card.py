"""Bytes that left the network card which carries the exchange, by the kernel's own counter."""

import os

import psutil


class CardCounter:
    """Reads the card that the launcher named to gloo and nccl; silent where none was named or it has no counter."""

    def __init__(self, is_reader: bool) -> None:
        self._card = os.environ.get("GLOO_SOCKET_IFNAME") or os.environ.get("NCCL_SOCKET_IFNAME")
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
