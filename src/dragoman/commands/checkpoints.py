"""`dragoman checkpoints`: what a run could go on from, every byte verified."""

import json
import time
from typing import Annotated, Any

import typer

from dragoman.commands.options import HostsFile
from dragoman.units import format_bytes, plural

VERIFY_SECONDS = 3600.0


def checkpoints(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or HOST:PATH.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    hosts: HostsFile = None,
) -> None:
    """List the checkpoints of a run and verify every byte of them; exit code 1 if one is damaged."""
    found = _verified(run, hosts)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _show(found)
    if any(entry["damage"] for entry in found):
        raise typer.Exit(1)


def _verified(run: str, hosts: str | None) -> list[dict[str, Any]]:
    from dragoman.launch.hosts.hosts import read_remote
    from dragoman.launch.hosts.session import HostSession
    from dragoman.run.verify import verify_checkpoints

    remote = read_remote(run, hosts)
    if remote is None:
        return verify_checkpoints(run)
    host, path = remote
    with HostSession(host) as session:
        return session.call("verify_checkpoints", timeout_seconds=VERIFY_SECONDS, run=path)


def _show(found: list[dict[str, Any]]) -> None:
    if not found:
        typer.echo("no checkpoint yet")
        return
    rows = [_row(entry) for entry in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    whole = [entry["name"] for entry in found if entry["counts"] and not entry["damage"]]
    total = format_bytes(sum(entry["bytes"] for entry in found))
    last = f"training goes on from {whole[-1]}" if whole else "training would start anew"
    typer.echo(f"{plural(len(found), 'checkpoint')}, {total}; {last}")


def _row(entry: dict[str, Any]) -> list[str]:
    written = "?" if entry["time"] is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["time"]))
    return [entry["name"], format_bytes(entry["bytes"]), written, ", ".join(entry["pointers"]), _state(entry)]


def _state(entry: dict[str, Any]) -> str:
    if entry["damage"]:
        return f"damaged: {entry['damage']}"
    is_step = entry["name"].startswith("step-")
    return "whole" if entry["counts"] or not is_step else "whole, but not on every host: it does not count"
