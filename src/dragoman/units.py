"""Quantities as people read them, always with their unit. Knows nothing of the rest."""


def format_bytes(num_bytes: float) -> str:
    """Decimal units, as disks and networks are sold: 852_000_000 -> '852 MB'."""
    value = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        # 999.95 would be shown as 1e+03: it belongs to the next unit.
        if abs(value) < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def format_bytes_both(num_bytes: float) -> str:
    """MB with MiB beside it, where people mix them up: '852 MB (813 MiB)'."""
    return f"{num_bytes / 1e6:,.1f} MB ({num_bytes / 2**20:,.1f} MiB)"


def format_seconds(seconds: float) -> str:
    """'0.41 s', '52 s', '3 min 20 s', '23 h 05 min'."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_step_time(step_seconds: float) -> str:
    """Both readings, because one is easily taken for the other: '0.20 s/step (5.0 steps/s)'."""
    per_second = 1 / step_seconds if step_seconds > 0 else 0.0
    return f"{step_seconds:.3g} s/step ({per_second:.3g} steps/s)"


def format_count(number: float) -> str:
    """'1,204' or, from a million on, '60.9 M'."""
    if abs(number) < 1_000_000:
        return f"{number:,.0f}"
    return f"{number / 1e6:,.1f} M"


def plural(number: int, noun: str) -> str:
    """'1 step', '1,204 steps', '8 microbatches'."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}" + ("" if number == 1 else ending)


def format_bit_rate(bits_per_second: float) -> str:
    """As ports are sold: '94.3 Mb/s', '1 Gb/s'."""
    value = float(bits_per_second) / 1000
    for unit in ("kb/s", "Mb/s", "Gb/s"):
        if abs(value) < 999.5 or unit == "Gb/s":
            return f"{value:.3g} {unit}" if abs(value) < 999.5 else f"{value:,.0f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes all")


def format_money(amount: float, currency: str = "$") -> str:
    """'$6,100', '$12.40': cents only where they matter."""
    sign = "-" if amount < 0 else ""
    value = abs(amount)
    rounded = f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
    return f"{sign}{currency}{rounded}" if len(currency) == 1 else f"{sign}{rounded} {currency}"
