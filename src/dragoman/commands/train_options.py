"""The options of `dragoman train`, a type for each: its signature is then a list that one can read."""

from pathlib import Path
from typing import Annotated

import typer

MAX_RESTARTS = 3

RecipeName = Annotated[str, typer.Argument(help="A shipped recipe, or a TOML file.")]
DataFolder = Annotated[Path | None, typer.Option(help="Folder made by `dragoman prepare`.")]
RunFolder = Annotated[Path | None, typer.Option(help="Run folder; one that exists goes on where it was.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes on this machine, or on each host; one per GPU where there are.")
]
Hosts = Annotated[
    str | None, typer.Option(metavar="LIST", help="Machines: a,b:2,user@c (b with two workers), or a hosts.toml.")
]
MinHosts = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Go on with so many of the hosts where others are lost.")
]
Init = Annotated[str | None, typer.Option(metavar="MODEL", help="Start from the weights of this run.")]
Fork = Annotated[str | None, typer.Option(metavar="RUN", help="Begin where this run or checkpoint is.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
]
PushData = Annotated[bool, typer.Option("--push-data", help="Copy the data folder to hosts that lack it.")]
Interface = Annotated[str | None, typer.Option(help="Network card between the hosts, such as eth1.")]
Subnet = Annotated[str | None, typer.Option(help="Network between the hosts, such as 10.0.0.0/8.")]
Mirror = Annotated[
    str | None, typer.Option(metavar="DEST", help="Copy the run there all the time: host:path, or a URL.")
]
MaxHours = Annotated[
    float | None, typer.Option(metavar="H", help="End after so many hours of training, over all attempts.")
]
MaxCost = Annotated[
    float | None, typer.Option(metavar="AMOUNT", help="End when training has cost so much; needs a price.")
]
Price = Annotated[
    float | None, typer.Option(min=0, metavar="N", help="Per hour, of all machines; else that of hosts.toml.")
]
Notify = Annotated[str | None, typer.Option(metavar="URL", help="Tell this web address how the run goes.")]
WhenDone = Annotated[
    str | None, typer.Option(metavar="CMD", help="Run this on the first host once the run has ended well.")
]
MaxRestarts = Annotated[
    int, typer.Option(min=0, metavar="N", help="Attempts that may fail in a row, without a new checkpoint.")
]
Detach = Annotated[bool, typer.Option("--detach", help="With --hosts: start it and leave.")]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="With --hosts: do not ask whether to go on with what is predicted.")
]
AbortIfWaiting = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Do not begin if more of a step is predicted to be waiting: 50%.")
]
NodeRank = Annotated[
    int | None, typer.Option(min=0, help="With --hosts: started by hand on each host; this one's number, from 0.")
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="With --node-rank: where the first host listens.")]
HelpRecipe = Annotated[bool, typer.Option("--help-recipe", help="Show every setting of a recipe.")]
