"""How a diagnosis writes numbers: percentages, rates in bytes and bits, money, steps. Knows no run."""

import math

from dragoman.units import format_bytes, format_bytes_both, format_seconds


def percent(share: float) -> str:
    """'37 %', '0.4 %', 'under 0.1 %'."""
    value = 100 * share
    if 0 < value < 0.1:
        return "under 0.1 %"
    return f"{value:.1f} %" if 0 < abs(value) < 1 else f"{value:.0f} %"


def seconds_text(seconds: float) -> str:
    """As everywhere, but with three digits below ten seconds: '4.3 ms', '0.143 s', '1.70 s', '3 min 20 s'."""
    if 0 < abs(seconds) < 0.0995:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:#.3g} s" if abs(seconds) < 9.995 else format_seconds(seconds)


def rate_text(bytes_per_second: float) -> str:
    """Bytes and bits, because one is easily taken for the other: '12.5 MB/s (100 Mb/s)'."""
    return f"{format_bytes(bytes_per_second)}/s ({bits_text(8 * bytes_per_second)})"


def size_text(num_bytes: float) -> str:
    """MB with MiB beside it, where people mix them up, and three digits of a small one: '0.412 MB (0.393 MiB)'."""
    if num_bytes >= 100e6:
        return format_bytes_both(num_bytes)
    return f"{num_bytes / 1e6:.3g} MB ({num_bytes / 2**20:.3g} MiB)"


def bits_text(bits_per_second: float) -> str:
    """'100 Mb/s', '1 Gb/s'."""
    value = bits_per_second
    for unit in ("b/s", "kb/s", "Mb/s"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} Gb/s"


def flops_text(flops_per_second: float) -> str:
    """'31.2 GFLOP/s', '125 TFLOP/s'."""
    is_large = flops_per_second >= 999.5e9
    return f"{flops_per_second / 1e12:.3g} TFLOP/s" if is_large else f"{flops_per_second / 1e9:.3g} GFLOP/s"


def money(amount: float, currency: str | None) -> str:
    """'$340', '12.40 EUR'."""
    value = f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:,.2f}"
    unit = currency or "$"
    return f"{unit}{value}" if len(unit) == 1 else f"{value} {unit}"


def times_text(factor: float) -> str:
    """'1.2 times', '17 times'."""
    return f"{factor:.2g} times" if factor < 99.5 else f"{factor:,.0f} times"


def at_rate(step_seconds: float) -> str:
    """'0.15 s a step (6.7 steps/s)': both readings, because one is easily taken for the other."""
    if not step_seconds > 0 or not math.isfinite(step_seconds):
        return "0 s a step"
    return f"{seconds_text(step_seconds)} a step ({1 / step_seconds:.3g} steps/s)"


def joined(parts: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def sentence(text: str) -> str:
    """With a capital at its head."""
    return text[:1].upper() + text[1:]
