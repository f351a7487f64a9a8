"""What doctor prints: a line per check, what to do about those that are not well, and the measurements."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.units import format_seconds, format_step_time, plural

if TYPE_CHECKING:
    from rich.table import Table

    from dragoman.diagnose.preflight.checks import Check
    from dragoman.diagnose.preflight.link import Outlook
    from dragoman.run.promise import ComputeProfile, LinkProfile, Profile

FILE_WIDTH = 130  # where nobody says how wide the screen is
MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "hurts": "[bold red]hurts[/]"}


def print_examination(
    checks: "Sequence[Check]", profile: "Profile", outlook: "Outlook | None", out: Path, seconds: float
) -> None:
    """Everything, worst last where the eye is."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=FILE_WIDTH)
    console.print(_check_table(checks))
    if profile.link is not None or profile.compute is not None:
        console.print(_measurement_table(profile, outlook))
    for hosts, check in sorted(_merged(checks), key=lambda line: line[1].level == "hurts"):
        if check.level != "ok":
            console.print(f"{MARKS[check.level]} {hosts}: {check.title} ({check.code})", soft_wrap=True)
            if check.advice:
                console.print(f"  {check.advice}", markup=False, soft_wrap=True)
    console.print(f"{out} written in {format_seconds(seconds)}", markup=False, soft_wrap=True)


def _check_table(checks: "Sequence[Check]") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("host", "", "check", "evidence", box=None, header_style="bold", pad_edge=False)
    for hosts, check in _merged(checks):
        table.add_row(escape(hosts), MARKS[check.level], escape(check.title), escape(check.evidence))
    return table


def _merged(checks: "Sequence[Check]") -> "list[tuple[str, Check]]":
    """Hosts that say the same share a line."""
    lines: dict[tuple[str, str, str, str], tuple[list[str], Check]] = {}
    for check in checks:
        key = (check.code, check.level, check.title, check.evidence)
        lines.setdefault(key, ([], check))[0].append(check.host)
    return [(", ".join(name for name in hosts if name) or "all", check) for hosts, check in lines.values()]


def _measurement_table(profile: "Profile", outlook: "Outlook | None") -> "Table":
    from rich.table import Table

    table = Table("measured", "", box=None, header_style="bold", pad_edge=False)
    if profile.link is not None:
        _add_link(table, profile.link)
    if profile.compute is not None:
        _add_compute(table, profile.compute, sum(host.num_ranks for host in profile.hosts))
    if outlook is not None:
        waiting = f", {100 * outlook.split.waiting_share:.0f} % waiting" if len(profile.hosts) > 1 else ""
        table.add_row(
            "a step, predicted", f"{format_step_time(outlook.split.total_seconds)} with {outlook.method}{waiting}"
        )
        if profile.compute is not None and profile.compute.target_tokens:
            rate = profile.compute.target_tokens / max(outlook.split.total_seconds, 1e-9)
            table.add_row("", f"{rate:,.0f} target tokens/s")
    return table


def _add_link(table: "Table", link: "LinkProfile") -> None:
    from dragoman.diagnose.wording import rate_text, seconds_text
    from dragoman.units import format_bytes

    for pair in link.pairs:
        table.add_row(f"{pair.source} to {pair.target}, alone", rate_text(pair.alone_bytes_per_second))
        if pair.both_bytes_per_second is not None:
            table.add_row(f"{pair.source} to {pair.target}, both ways at once", rate_text(pair.both_bytes_per_second))
    table.add_row("out of the slowest host, all at once", rate_text(link.bytes_per_second))
    table.add_row("latency of a sum", seconds_text(link.latency_seconds))
    for point in link.sums:
        table.add_row(f"sum of {format_bytes(point.num_bytes)} over all ranks", seconds_text(point.seconds))


def _add_compute(table: "Table", compute: "ComputeProfile", num_ranks: int) -> None:
    from dragoman.diagnose.wording import seconds_text

    forward, backward = compute.forward_seconds, compute.backward_seconds
    pieces = -(-compute.num_microbatches // max(1, num_ranks))
    step_seconds = pieces * (forward + backward) + compute.optimizer_seconds
    tokens = f" of {compute.target_tokens // compute.num_microbatches:,} target tokens" if compute.target_tokens else ""
    table.add_row("a step", plural(compute.num_microbatches, "microbatch") + tokens)
    table.add_row("kernels", f"{compute.kernels}, {compute.precision}")
    table.add_row("activations", "recomputed on the way back" if compute.recomputes else "kept")
    table.add_row("one microbatch", f"forward {seconds_text(forward)}, backward {seconds_text(backward)}")
    table.add_row("optimizer", seconds_text(compute.optimizer_seconds))
    table.add_row("a step without exchange", f"{format_step_time(step_seconds)}, {plural(pieces, 'microbatch')} a rank")
    if compute.peak_flops:
        table.add_row("matrix product", f"{compute.peak_flops / 1e12:.3g} TFLOP/s a rank in {compute.precision}")
    slowest = {name: seconds for name, seconds in compute.method_seconds.items() if seconds > 0}
    for name, seconds in slowest.items():
        table.add_row(f"arithmetic of {name}", f"{seconds_text(seconds)} a step")
