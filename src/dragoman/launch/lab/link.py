"""The speed of an emulated link: how people write it, and how the kernel's token bucket is told. Knows no host."""

import re
from dataclasses import dataclass

from dragoman.errors import DragomanError

UNLIMITED = "unlimited"
EXAMPLES = "write a number and its unit: 100mbit, 1gbit, 100mbit/20mbit (from a host / to it), or unlimited"
_UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_SLOWEST, _FASTEST = 100 * 10**3, 100 * 10**9
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LONGEST_DELAY_SECONDS = 5.0


@dataclass(frozen=True)
class Link:
    """One host's port. None: as fast as the machine can."""

    from_host_bits_per_second: int | None
    to_host_bits_per_second: int | None
    # One budget for both directions together, as some rented machines have.
    is_sum: bool = False

    def describe(self) -> str:
        there, back = describe_rate(self.from_host_bits_per_second), describe_rate(self.to_host_bits_per_second)
        if self.is_sum:
            return f"{there} link (both directions together)"
        return f"{there} link" if there == back else f"link of {there} from each host and {back} to it"


def parse_link(text: str, is_sum: bool = False) -> Link:
    """'100mbit', or '100mbit/20mbit': from the host to the switch, and from the switch to the host."""
    there, slash, back = text.partition("/")
    link = Link(parse_rate(there), parse_rate(back if slash else there), is_sum)
    if is_sum and (slash or link.from_host_bits_per_second is None):
        raise DragomanError(f"--sum needs one speed, not {text!r}", "write --link 100mbit --sum")
    return link


def parse_rate(text: str) -> int | None:
    """Bits per second, or None for no limit."""
    if text.strip().lower() == UNLIMITED:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z/]*)", text.strip().lower())
    if match is None:
        raise DragomanError(f"{text!r} is no link speed", EXAMPLES)
    if match[2] not in _UNITS:
        wrong = f"the unit of {text!r} is not known" if match[2] else f"the link speed {text!r} has no unit"
        raise DragomanError(wrong, EXAMPLES)
    rate = round(float(match[1]) * _UNITS[match[2]])
    if not _SLOWEST <= rate <= _FASTEST:
        raise DragomanError(f"a link of {text} cannot be emulated", "give 100kbit to 100gbit, or unlimited")
    return rate


def parse_delay(text: str) -> float:
    """'10ms' -> 0.01 seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|ms|s)", text.strip().lower())
    if match is None:
        raise DragomanError(f"{text!r} is no delay", "write a number and its unit: 10ms, 500us, 0.1s")
    seconds = float(match[1]) * _TIMES[match[2]]
    if seconds > _LONGEST_DELAY_SECONDS:
        raise DragomanError(f"a delay of {text} cannot be emulated", f"give at most {_LONGEST_DELAY_SECONDS:.0f}s")
    return seconds


def describe_rate(bits_per_second: int | None) -> str:
    if bits_per_second is None:
        return UNLIMITED
    for factor, unit in ((10**9, "Gb/s"), (10**6, "Mb/s")):
        if bits_per_second >= factor:
            return f"{bits_per_second / factor:.4g} {unit}"
    return f"{bits_per_second / 1000:.4g} kb/s"


def token_bucket(bits_per_second: int) -> str:
    """Arguments of `tc ... tbf`.

    The bucket holds 8 ms of the rate, because a slow timer must not lose tokens at 1 Gb/s, and at least one packet of
    64 KiB as TCP hands them down. Packets wait at most 50 ms, as in a home router, or 20 ms on fast links.
    """
    bucket_bytes = max(64 * 1024, bits_per_second // 8 * 8 // 1000)
    wait_ms = 50 if bits_per_second < 500 * 10**6 else 20
    return f"tbf rate {bits_per_second}bit burst {bucket_bytes} latency {wait_ms}ms"
