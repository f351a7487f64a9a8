"""Which addresses the hosts of a run should talk over. Pure: lists of network cards in, candidates and a choice out."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.units import format_bytes

# Not `is_private`, which counts documentation and benchmark ranges too. The last is carrier-grade NAT and VPN overlays.
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
BRIDGES = ("docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc", "lxdbr", "podman", "vmnet", "vboxnet")
# A private network this much slower than a public one is still taken.
PRIVATE_SHARE = 0.9
OVERRIDES = "--interface CARD or --subnet 10.0.0.0/8 chooses the network by hand, or `address` in hosts.toml"


@dataclass(frozen=True)
class Card:
    """One IPv4 address of a host and the network card that has it."""

    interface: str
    ip: IPv4Interface

    @property
    def address(self) -> str:
        return str(self.ip.ip)

    @property
    def is_private(self) -> bool:
        return self.ip.is_loopback or any(self.ip.ip in block for block in PRIVATE)

    @property
    def is_bridge(self) -> bool:
        """Made by software on one machine: seldom the way to another one."""
        return self.interface.startswith(BRIDGES)


@dataclass(frozen=True)
class Candidate:
    """One address per host, in the order of hosts, that may reach each other."""

    label: str
    cards: tuple[Card, ...]

    @property
    def is_private(self) -> bool:
        return all(card.is_private for card in self.cards)

    @property
    def is_bridge(self) -> bool:
        return any(card.is_bridge for card in self.cards)


Pair = tuple[int, int]  # positions of the sender and of the receiver


def _no_rates() -> dict[Pair, float]:
    return {}


def _no_problems() -> dict[Pair, str]:
    return {}


@dataclass(frozen=True)
class Measured:
    """What the probes over one candidate found."""

    candidate: Candidate
    rates: Mapping[Pair, float] = field(default_factory=_no_rates)  # bytes per second
    problems: Mapping[Pair, str] = field(default_factory=_no_problems)

    @property
    def slowest(self) -> float | None:
        return min(self.rates.values(), default=None)

    def describe(self) -> str:
        """'10.0.0.0/24 (eth1), 118 MB/s or more between any two hosts'."""
        cards = ", ".join(dict.fromkeys(card.interface for card in self.candidate.cards))
        rate = "" if self.slowest is None else f", {format_bytes(self.slowest)}/s or more between any two hosts"
        return f"{self.candidate.label} ({cards}){rate}"


def parse_cards(addresses: Sequence[Mapping[str, Any]]) -> list[Card]:
    """As a host reports them; bridges last."""
    cards = [Card(entry["interface"], IPv4Interface(f"{entry['address']}/{entry['netmask']}")) for entry in addresses]
    return sorted(cards, key=lambda card: card.is_bridge)


def common_subnets(cards: Sequence[Sequence[Card]]) -> list[Candidate]:
    """The subnets in which every host has an address of its own; those of bridges last."""
    networks = dict.fromkeys(card.ip.network for host in cards for card in host)
    found = [_candidate(str(network), network, cards) for network in networks]
    return sorted((each for each in found if each is not None), key=lambda each: each.is_bridge)


def routed_candidates(cards: Sequence[Sequence[Card]], ssh_addresses: Sequence[str | None]) -> list[Candidate]:
    """Where no subnet is common: private addresses that a router may join, and the addresses ssh came in by."""
    found = [_candidate(f"routed {block}", block, cards) for block in PRIVATE]
    by_ssh = [_card_with(host, address) for host, address in zip(cards, ssh_addresses, strict=True)]
    found.append(_distinct("the addresses of ssh", by_ssh))
    return [each for each in found if each is not None]


def wanted_candidate(
    hosts: Sequence[Host], cards: Sequence[Sequence[Card]], interface: str | None, subnet: str | None
) -> tuple[Candidate | None, dict[str, str]]:
    """What the user fixed, if anything, and a problem for every host that has no such address of its own."""
    network = parse_subnet(subnet) if subnet is not None else None
    fixed = [_card_with(have, host.address) for host, have in zip(hosts, cards, strict=True)]
    first_fixed = next((card for card in fixed if card is not None), None)
    if interface is None and network is None and not any(host.address for host in hosts):
        return None, {}
    chosen: list[Card | None] = []
    problems: dict[str, str] = {}
    owners: dict[str, str] = {}
    for host, have, own in zip(hosts, cards, fixed, strict=True):
        if host.address is not None:
            card, wanted = own, f"address {host.address}"
        elif interface is not None:
            card, wanted = next((each for each in have if each.interface == interface), None), f"card {interface}"
        else:
            block = network or (first_fixed.ip.network if first_fixed else IPv4Network("0.0.0.0/0"))
            card, wanted = _card_in(have, block), f"address in {block}"
        chosen.append(card)
        if card is None:
            problems[host.name] = f"has no {wanted} that is up; it has {_show(have)}"
        elif (owner := owners.setdefault(card.address, host.name)) != host.name:
            problems[host.name] = f"has the same address {card.address} as {owner}"
    label = subnet or interface or (str(first_fixed.ip.network) if first_fixed else "")
    return _distinct(label, chosen), problems


def parse_subnet(text: str) -> IPv4Network:
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        raise DragomanError(f"--subnet {text!r} is no IPv4 subnet", "for example --subnet 10.0.0.0/24") from None


def choose(measured: Sequence[Measured]) -> Measured | None:
    """The fastest by its slowest pair, a private one before a public one that is hardly faster."""
    usable = [each for each in measured if not each.problems]
    if not usable:
        return None
    best = max(each.slowest or 0.0 for each in usable)
    good = [each for each in usable if (each.slowest or 0.0) >= PRIVATE_SHARE * best]
    private = [each for each in good if each.candidate.is_private]
    return max(private or good, key=lambda each: each.slowest or 0.0)


def _candidate(label: str, network: IPv4Network, cards: Sequence[Sequence[Card]]) -> Candidate | None:
    return _distinct(label, [_card_in(host, network) for host in cards])


def _distinct(label: str, cards: Sequence[Card | None]) -> Candidate | None:
    """Docker gives every machine the same 172.17.0.1: such addresses lead nowhere else."""
    whole = tuple(card for card in cards if card is not None)
    if len(whole) < len(cards) or len({card.address for card in whole}) < len(whole):
        return None
    return Candidate(label, whole)


def _card_in(cards: Sequence[Card], network: IPv4Network) -> Card | None:
    return next((card for card in cards if card.ip.ip in network), None)


def _card_with(cards: Sequence[Card], address: str | None) -> Card | None:
    return next((card for card in cards if address and card.ip.ip == _address(address)), None)


def _address(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def _show(cards: Sequence[Card]) -> str:
    return ", ".join(f"{card.interface} {card.ip}" for card in cards) or "no address at all"


def show_cards(hosts: Sequence[Host], cards: Sequence[Sequence[Card]]) -> list[str]:
    """One line per host: what it has."""
    return [f"{host.name} has {_show(have)}" for host, have in zip(hosts, cards, strict=True)]
