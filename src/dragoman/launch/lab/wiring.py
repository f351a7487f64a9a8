"""The network as lines for `ip -batch` and `tc -batch`. Pure text: nothing is run here.

Every card of a host is joined by a cable to a port of the switch: `eth0` of host b to the port `b-eth0`. What leaves
the host is shaped at its card, what goes to it at the port; so each limit holds per host, whoever the others are.
"""

from collections.abc import Mapping

from dragoman.launch.lab.link import token_bucket
from dragoman.launch.lab.plan import Card, EmulatedHost, LabPlan

PREFIX_LENGTH = 24


def port_name(host: EmulatedHost, card: Card) -> str:
    return f"{host.name}-{card.name}"


def switch_links(plan: LabPlan, host_pids: Mapping[str, int]) -> list[str]:
    """Lines for `ip`: a bridge for each kind of card, a port for each host. With a delay the relay is the cable."""
    lines = ["link set lo up"]
    for card in plan.hosts[0].cards:
        lines.append(f"link add {_bridge(card)} type bridge stp_state 0 mcast_snooping 0")
        lines.append(f"link set {_bridge(card)} up")
    for host in plan.hosts:
        for card in host.cards:
            port = port_name(host, card)
            if not plan.delay_seconds:
                far_end = f"name {card.name} address {card.hardware_address} netns {host_pids[host.name]}"
                lines.append(f"link add {port} type veth peer {far_end}")
            lines.append(f"link set {port} master {_bridge(card)} up")
            if card.link.is_sum:
                lines += [f"link add {_meter(port)} type ifb", f"link set {_meter(port)} up"]
    return lines


def switch_shaping(plan: LabPlan) -> list[str]:
    """Lines for `tc` at the ports."""
    return [line for host in plan.hosts for card in host.cards for line in _port_shaping(port_name(host, card), card)]


def _port_shaping(port: str, card: Card) -> list[str]:
    if card.link.is_sum:
        assert card.link.from_host_bits_per_second is not None
        redirect = f"protocol all u32 match u32 0 0 action mirred egress redirect dev {_meter(port)}"
        return [
            f"qdisc add dev {_meter(port)} root {token_bucket(card.link.from_host_bits_per_second)}",
            f"qdisc add dev {port} clsact",
            f"filter add dev {port} ingress {redirect}",
            f"filter add dev {port} egress {redirect}",
        ]
    rate = card.link.to_host_bits_per_second
    return [] if rate is None else [f"qdisc add dev {port} root {token_bucket(rate)}"]


def host_links(host: EmulatedHost) -> list[str]:
    """Lines for `ip` on the host."""
    lines = ["link set lo up"]
    for card in host.cards:
        lines.append(f"link set {card.name} address {card.hardware_address} up")
        lines.append(f"addr add {card.address}/{PREFIX_LENGTH} brd + dev {card.name}")
    return lines


def host_shaping(host: EmulatedHost) -> list[str]:
    """Lines for `tc` on the host."""
    lines: list[str] = []
    for card in host.cards:
        rate = card.link.from_host_bits_per_second
        if rate is not None and not card.link.is_sum:
            lines.append(f"qdisc add dev {card.name} root {token_bucket(rate)}")
    return lines


def _bridge(card: Card) -> str:
    return f"bridge-{card.name}"


def _meter(port: str) -> str:
    return f"sum-{port}"
