"""`dragoman doctor`: check the machines, measure what a run will use, say what would hurt it."""

import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import CheckFailed, DragomanError

if TYPE_CHECKING:
    from dragoman.commands.doctor_round import Round, Say
    from dragoman.config import Recipe
    from dragoman.diagnose.preflight.checks import Check, Needs
    from dragoman.diagnose.preflight.link import Outlook
    from dragoman.run.promise import ComputeProfile, Profile


def doctor(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe whose step is timed: a shipped one, or a TOML file.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder made by `dragoman prepare`; else text of usual lengths.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(metavar="LIST", help="Machines: a,b:2,user@c (b with two workers), or a hosts.toml.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine, or on each host; one per GPU where there are.")
    ] = None,
    interface: Annotated[str | None, typer.Option(help="Network card between the hosts, such as eth1.")] = None,
    subnet: Annotated[str | None, typer.Option(help="Network between the hosts, such as 10.0.0.0/8.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the profile is written.")] = Path("profile.json"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON.")] = False,
) -> None:
    """Check the machines and measure compute, link and disk before a run."""
    from dragoman.commands.doctor_hosts import see_hosts, see_this_machine
    from dragoman.commands.doctor_output import print_examination
    from dragoman.commands.doctor_round import Wish
    from dragoman.data.shards import open_shards
    from dragoman.dist.limits import check_limits
    from dragoman.launch.hosts.hosts import read_hosts
    from dragoman.recipe import load_recipe
    from dragoman.run.promise import write_promise

    check_limits()
    _refuse_idle(recipe, hosts, {"--data": data, "--set": changes}, {"--interface": interface, "--subnet": subnet})
    _check_place(out)
    settings = load_recipe(recipe, changes or []) if recipe is not None else None
    if data is not None and hosts is None:
        open_shards(data)
    wish = Wish(settings, data, workers, interface, subnet)
    start = time.monotonic()
    with _progress() as say:
        found = see_hosts(wish, read_hosts(hosts), say) if hosts is not None else see_this_machine(wish, say)
    profile, checks, outlook = conclude(found, settings)
    write_promise(out, profile)
    if as_json:
        typer.echo(out.read_text(encoding="utf-8"), nl=False)
    else:
        print_examination(checks, profile, outlook, out, time.monotonic() - start)
    hurting = list(dict.fromkeys(check.code for check in checks if check.level == "hurts"))
    if hurting:
        raise CheckFailed(f"this would hurt the run: {', '.join(hurting)}", "docs/checks.md explains every check")


def _refuse_idle(
    recipe: str | None, hosts: str | None, need_recipe: dict[str, object], need_hosts: dict[str, object]
) -> None:
    """An option that would have no effect is a mistake."""
    idle = [(name, "a recipe") for name, value in need_recipe.items() if value and recipe is None]
    idle += [(name, "--hosts") for name, value in need_hosts.items() if value and hosts is None]
    if idle:
        raise DragomanError(f"{idle[0][0]} means nothing without {idle[0][1]}", "dragoman doctor RECIPE --hosts a,b")


def _check_place(out: Path) -> None:
    """What takes half a minute to measure is not lost because it cannot be written."""
    folder = out.absolute().parent
    if not folder.is_dir():
        raise DragomanError(f"there is no folder {folder}", "name another file with --out")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DragomanError(f"cannot write to {folder}: {error.strerror}", "name another file with --out") from None
    if out.is_dir():
        raise DragomanError(f"{out} is a folder", "name a file with --out")


@contextmanager
def _progress() -> "Generator[Say]":
    """What is being looked at, beside a clock; nothing where there is no terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)


def conclude(found: "Round", recipe: "Recipe | None") -> "tuple[Profile, list[Check], Outlook | None]":
    """The profile, every check, and what both promise for the recipe."""
    from dataclasses import replace

    from dragoman.diagnose.preflight.gpus import check_gpus
    from dragoman.diagnose.preflight.hosts import check_hosts, check_together
    from dragoman.diagnose.preflight.link import check_devices, check_link, check_outlook, check_route, outlook_of

    profile = _profile(found)
    needs = _needs(found, recipe, profile.compute)
    whole = [host for host in found.hosts if host.num_cores]
    checks = [*found.checks]
    if found.hosts:
        checks += [*check_together(found.hosts, found.ours), *check_gpus(whole, needs), *check_hosts(whole, needs)]
    if found.route is not None and len(found.hosts) > 1:
        checks += check_route(found.route)
    if profile.link is not None:
        checks += check_link(profile.link, found.hosts)
    outlook = outlook_of(recipe, profile) if recipe is not None else None
    if outlook is not None:
        checks += check_outlook(outlook, len(found.hosts))
    if found.measured is not None:
        checks += check_devices(found.hosts, dict(found.measured["devices"]))
    return replace(profile, checks=tuple(check.to_dict() for check in checks)), checks, outlook


def _needs(found: "Round", recipe: "Recipe | None", timed: "ComputeProfile | None") -> "Needs":
    from dragoman.diagnose.preflight.checks import Needs
    from dragoman.model.size import size_of
    from dragoman.plan.checkpoint import most_kept
    from dragoman.plan.microbatches import needed_bytes, value_bytes_of

    if recipe is None:
        return Needs(ranks=found.ranks)
    size = size_of(recipe.model, recipe.vocab.size)
    number = timed.num_microbatches if timed is not None else _expected_number(found, recipe)
    value_bytes = 4 if timed is None else value_bytes_of(timed.precision, is_fused=timed.kernels == "fused")
    num_kept = most_kept(recipe.checkpoint) + 1  # and one that is being written
    return Needs(
        checkpoint_bytes=size.checkpoint_bytes,
        disk_bytes=num_kept * size.checkpoint_bytes,
        rank_bytes=needed_bytes(
            recipe, recipe.vocab.size, number, value_bytes, None if timed is None else timed.recomputes
        ),
        ranks=found.ranks,
    )


def _expected_number(found: "Round", recipe: "Recipe") -> int:
    """Of microbatches, where no rank could settle it: by what the GPUs say is free, or as many as there can be."""
    from dragoman.plan.microbatches import choose_number, most_number

    gpus = [gpu for host in found.hosts for gpu in host.gpus if gpu.memory_total_bytes]
    free = [(gpu.memory_total_bytes or 0) - (gpu.memory_used_bytes or 0) for gpu in gpus]
    try:
        return choose_number(recipe, recipe.vocab.size, sum(found.ranks.values()), min(free, default=None))
    except DragomanError:  # the check of memory says it, among the others
        return most_number(recipe)


def _profile(found: "Round") -> "Profile":
    from pydantic import TypeAdapter

    from dragoman.run.promise import ComputeProfile, HostProfile, LinkProfile, Profile

    hosts = tuple(
        HostProfile(
            name=host.name,
            cpu=host.cpu,
            num_cores=host.num_cores,
            memory_bytes=host.memory_bytes,
            gpus=tuple(gpu.name for gpu in host.gpus),
            num_ranks=found.ranks.get(host.name, 1),
            price_per_hour=found.prices.get(host.name),
            disk_bytes_per_second=host.disk_bytes_per_second,
            disk_free_bytes=host.disk_free_bytes,
        )
        for host in found.hosts
    )
    measured = found.measured or {}
    link = TypeAdapter(LinkProfile | None).validate_python(measured.get("link"))
    compute = TypeAdapter(ComputeProfile | None).validate_python(measured.get("compute"))
    return Profile(time.time(), hosts, link, compute)
