"""`dragoman lab`: a command on emulated hosts, on this one machine."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.launch.lab.link import Link


def lab(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="What to run on host a; default: a shell.")
    ] = None,
    hosts: Annotated[int, typer.Option(help="How many hosts: a, b, c, ...")] = 2,
    link: Annotated[
        str, typer.Option(help="Speed of each host's port: 100mbit, 1gbit, unlimited, or FROM/TO: 100mbit/20mbit.")
    ] = "unlimited",
    sum_: Annotated[bool, typer.Option("--sum", help="The speed limits both directions together.")] = False,
    link_of: Annotated[
        list[str] | None, typer.Option(metavar="HOST=SPEED", help="Another speed for one host: b=10mbit.")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="From host to host, one way: 10ms. For up to 200mbit.")] = None,
    public: Annotated[
        str | None, typer.Option(metavar="SPEED", help="A second card of this speed, to which host names lead.")
    ] = None,
    own: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Folder that starts empty on every host but a.")
    ] = None,
) -> None:
    """Run a command on emulated hosts joined by a shaped link, on one Linux machine."""
    from dragoman.launch.lab.foreground import check_command, run_in_lab
    from dragoman.launch.lab.lab import open_lab
    from dragoman.launch.lab.link import parse_delay, parse_link

    words = command or [os.environ.get("SHELL", "/bin/sh")]
    check_command(words)
    with open_lab(
        hosts,
        parse_link(link, sum_),
        delay_seconds=parse_delay(delay) if delay else 0.0,
        links_of=_links_of(link_of or [], sum_),
        public=parse_link(public) if public else None,
        own_folders=own or [],
    ) as opened:
        for line in opened.describe():
            typer.echo(line, err=True)
        code = run_in_lab(opened, words)
    if code:
        raise typer.Exit(code)


def _links_of(texts: list[str], is_sum: bool) -> "dict[str, Link]":
    from dragoman.launch.lab.link import parse_link

    found: dict[str, Link] = {}
    for text in texts:
        name, equals, speed = text.partition("=")
        if not equals:
            raise DragomanError(f"--link-of {text} names no speed", "write --link-of b=10mbit")
        found[name] = parse_link(speed, is_sum)
    return found
