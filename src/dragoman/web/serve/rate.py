"""How often a client may ask: a bucket of tokens for every key or address, and a bound on the number of buckets."""

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.web.serve.problem import Problem

MAX_BUCKETS = 10_000
_RATE = re.compile(r"(\d{1,9})/(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Rate:
    """So many requests in so many seconds."""

    num_requests: int
    seconds: float


class RateLimit:
    """A full bucket holds what may be asked at once; it fills up again over `rate.seconds`."""

    def __init__(self, rate: Rate | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens at a moment, oldest use first

    def check(self, client: str) -> None:
        if self._rate is None:
            return
        now = self._clock()
        full, per_second = self._rate.num_requests, self._rate.num_requests / self._rate.seconds
        tokens, moment = self._buckets.pop(client, (float(full), now))
        tokens = min(full, tokens + (now - moment) * per_second)
        is_allowed = tokens >= 1
        self._buckets[client] = (tokens - is_allowed, now)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise Problem(429, "too many requests; try again later", (1 - tokens) / per_second)


def client_of(address: str, key: str | None) -> str:
    """A key, or an address; of an IPv6 address the network, because each client has a whole one."""
    if key:
        return f"key {hash(key)}"
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address


def parse_rate(text: str) -> Rate:
    match = _RATE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise DragomanError(f"--rate-limit {text}: not a rate", "for example 60/min, 5/s or 1000/h")
    return Rate(int(match[1]), _SECONDS[match[2]])
