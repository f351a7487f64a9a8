"""The hosts a user names: `a,b:2,user@c`, or a `hosts.toml`. Text in, `Host` out; nothing is reached from here."""

import difflib
import ipaddress
import os
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from dragoman.errors import DragomanError
from dragoman.recipe import UNREADABLE, shown

SYNTAX = "for example --hosts a,b:2,user@c (b with two workers), or --hosts hosts.toml"
KEYS = ("name", "ssh", "port", "workers", "gpus", "price", "address", "python")
_ENTRY = re.compile(r"(?P<user>[^@\s]+@)?(?:\[(?P<ipv6>[0-9A-Fa-f:.%]+)\]|(?P<name>[^@:\[\]\s]+))(?::(?P<count>.*))?")


@dataclass(frozen=True)
class Host:
    """A machine as the user names it. What is None is found out on the host."""

    name: str  # in every message, and in the log
    target: str  # what the ssh client is given
    port: int | None = None
    num_workers: int | None = None
    price_per_hour: float | None = None
    address: str | None = None  # the private one, where it should not be chosen
    python: str | None = None


class _Entry(BaseModel):
    """A `[[host]]` of hosts.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ssh: str
    name: str | None = None
    port: Annotated[int | None, Field(ge=1, le=65_535)] = None
    workers: Annotated[int | None, Field(ge=1, validation_alias=AliasChoices("workers", "gpus"))] = None
    price: Annotated[float | None, Field(ge=0, strict=False)] = None
    address: str | None = None
    python: str | None = None


def read_hosts(text: str) -> list[Host]:
    """The hosts of a list or of a file, in order; the first one will own the run."""
    is_file = text.endswith(".toml") or "/" in text or os.path.isfile(text)  # noqa: PTH113 - no error for a long list
    hosts = _from_file(Path(text)) if is_file else [_from_word(word.strip(), text) for word in text.split(",")]
    _refuse_twins(hosts)
    return _named_apart(hosts)


def read_remote(text: str, hosts: str | None = None) -> tuple[Host, str] | None:
    """`HOST:PATH` as a host and a path there; None for what is a path here.

    HOST is a name of the list or file `hosts`, or else of a `hosts.toml` in the current folder, or an ssh target.
    """
    target, colon, path = text.partition(":")
    if not colon or "/" in target or not target or os.path.exists(text):  # noqa: PTH110 - no error for a long name
        return None
    if not path:
        raise DragomanError(f"{text!r} names no folder on {target}", f"give {target}:PATH")
    source = hosts or ("hosts.toml" if Path("hosts.toml").is_file() else None)
    known = read_hosts(source) if source else []
    host = next((host for host in known if target in (host.name, host.target)), None)
    return host or Host(target.rpartition("@")[2], _checked_target(target, text)), path


def _from_word(word: str, text: str) -> Host:
    match = _ENTRY.fullmatch(word)
    if match is None:
        problem = "an empty name" if not word else f"{word!r} is no host"
        raise DragomanError(f"--hosts {text!r}: {problem}", SYNTAX)
    count = match["count"]
    if count is not None and (not count.isdecimal() or int(count) < 1):
        problem = f"{word!r} asks for {count!r} workers"
        raise DragomanError(f"--hosts {text!r}: {problem}", f"{SYNTAX}; another ssh port goes into hosts.toml")
    name = match["ipv6"] or match["name"]
    return Host(name, _checked_target((match["user"] or "") + name, "--hosts"), None, int(count) if count else None)


def _from_file(path: Path) -> list[Host]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DragomanError(f"cannot read {path}: {error.strerror}", SYNTAX) from None
    except UNREADABLE as error:
        raise DragomanError(f"{path} is not valid TOML: {error}", "mend that line") from None
    entries = values.get("host")
    if not isinstance(entries, list) or not entries or set(values) != {"host"}:
        raise DragomanError(
            f"{path} has no list of hosts, or something beside it", 'one [[host]] per machine, with ssh = "user@name"'
        )
    found = cast("list[Any]", entries)
    return [_from_entry(entry, f"{path}, host {number}") for number, entry in enumerate(found, start=1)]


def _from_entry(values: Any, origin: str) -> Host:
    try:
        entry = _Entry.model_validate(values)
    except ValidationError as error:
        raise _explain(error, origin) from None
    if entry.address is not None and not _is_ipv4(entry.address):
        problem = f"{origin}: address is {entry.address!r}"
        raise DragomanError(problem, 'an IPv4 address of that host, such as address = "10.0.0.2"')
    name = entry.name or entry.ssh.rpartition("@")[2]
    target = _checked_target(entry.ssh, origin)
    return Host(name, target, entry.port, entry.workers, entry.price, entry.address, entry.python)


def _explain(error: ValidationError, origin: str) -> DragomanError:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else "host"
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, KEYS, n=1)
        meant = f", did you mean {near[0]!r}?" if near else ""
        return DragomanError(f"{origin}: unknown key {key!r}{meant}", f"a host has {', '.join(KEYS)}")
    given = "" if first["type"] == "missing" else f", not {shown(first['input'])}"
    return DragomanError(f"{origin}: {key}: {first['msg']}{given}", f"a host has {', '.join(KEYS)}")


def _checked_target(target: str, origin: str) -> str:
    # ssh would read such a name as an option.
    if not target or target.startswith("-") or any(letter.isspace() for letter in target):
        raise DragomanError(f"{origin}: {target!r} is no ssh target", "give user@name, or a name of your ssh config")
    return target


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _refuse_twins(hosts: list[Host]) -> None:
    counts = Counter((host.target, host.port) for host in hosts)
    twins = [host.name for host in dict.fromkeys(hosts) if counts[host.target, host.port] > 1]
    if twins:
        problem = f"host {twins[0]} is listed twice"
        raise DragomanError(problem, f"name each host once; {twins[0]}:2 gives it two workers")


def _named_apart(hosts: list[Host]) -> list[Host]:
    """Rented machines may share one address and differ in the port only: then the port is part of the name."""
    counts = Counter(host.name for host in hosts)
    named = [host if counts[host.name] == 1 else replace(host, name=f"{host.name}-{host.port or 22}") for host in hosts]
    if len({host.name for host in named}) < len(named):
        named = [replace(host, name=host.target) for host in named]
    return named
