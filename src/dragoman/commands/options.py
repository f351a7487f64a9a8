"""Options that several commands have."""

from typing import Annotated

import typer

HostsFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="hosts.toml in which HOST is named; ./hosts.toml if it exists.")
]
