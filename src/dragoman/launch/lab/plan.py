"""What a lab is to be: hosts, addresses, cores, links. Plain data that travels to the process that builds it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.lab.link import Link

CARD, PUBLIC_CARD = "eth0", "pub0"
MAX_HOSTS = len(ascii_lowercase)


@dataclass(frozen=True)
class Card:
    """A network card of a host and the link behind it."""

    name: str
    address: str
    hardware_address: str
    link: Link


@dataclass(frozen=True)
class EmulatedHost:
    name: str
    # The private card first; the last one is where its name leads to.
    cards: tuple[Card, ...]
    # Empty: it may use every core.
    cores: tuple[int, ...]

    @property
    def login_address(self) -> str:
        return self.cards[-1].address


@dataclass(frozen=True)
class LabPlan:
    folder: str
    hosts: tuple[EmulatedHost, ...]
    # One way, from host to host.
    delay_seconds: float
    working_folder: str
    home: str
    user: str
    shell: str
    # Folders that start empty on every host but the first.
    own_folders: tuple[str, ...]
    has_sshd: bool
    needs_user_namespace: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> "LabPlan":
        fields: dict[str, Any] = json.loads(text)
        hosts = tuple(_host_from(each) for each in fields.pop("hosts"))
        return LabPlan(hosts=hosts, own_folders=tuple(fields.pop("own_folders")), **fields)


def _host_from(fields: dict[str, Any]) -> EmulatedHost:
    cards = tuple(Card(link=Link(**each.pop("link")), **each) for each in fields["cards"])
    return EmulatedHost(fields["name"], cards, tuple(fields["cores"]))


def plan_hosts(
    num_hosts: int, link: Link, links_of: dict[str, Link], public: Link | None, cores: Sequence[int]
) -> tuple[EmulatedHost, ...]:
    """Hosts a, b, c, ...; `links_of` names those whose private link is another."""
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise DragomanError(f"{num_hosts} hosts cannot be emulated", f"give --hosts 1 to {MAX_HOSTS}")
    names = ascii_lowercase[:num_hosts]
    for name in links_of:
        if name not in list(names):
            raise DragomanError(f"--link-of names host {name!r}", f"the hosts are {', '.join(names)}")
    shares = share_out(cores, num_hosts)
    hosts: list[EmulatedHost] = []
    for index, name in enumerate(names, start=1):
        cards = [Card(CARD, f"10.77.0.{index}", f"02:77:00:00:00:{index:02x}", links_of.get(name, link))]
        if public is not None:
            cards.append(Card(PUBLIC_CARD, f"192.0.2.{index}", f"02:77:01:00:00:{index:02x}", public))
        hosts.append(EmulatedHost(name, tuple(cards), shares[index - 1]))
    return tuple(hosts)


def share_out(cores: Sequence[int], num_hosts: int) -> list[tuple[int, ...]]:
    """Neighbouring cores for each host; nothing where there are fewer cores than hosts."""
    if len(cores) < num_hosts:
        return [()] * num_hosts
    bounds = [len(cores) * index // num_hosts for index in range(num_hosts + 1)]
    return [tuple(cores[start:end]) for start, end in pairwise(bounds)]
