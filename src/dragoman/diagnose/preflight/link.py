"""Checks of what was measured: the network that was chosen, the link, and what both mean for a recipe. Pure rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.config import Recipe
from dragoman.diagnose.preflight.checks import CardFacts, Check, HostFacts, Level
from dragoman.diagnose.wording import bits_text, percent, rate_text, seconds_text
from dragoman.plan.hints import CARD_SHARE, SUM_SHARE
from dragoman.plan.setting import setting_of_profile, settled
from dragoman.plan.split import plan_step
from dragoman.plan.traffic import method_name
from dragoman.run.promise import LinkProfile, PairSpeed, Profile, StepSplit
from dragoman.units import format_bytes

FAST_ETHERNET = (85e6, 100e6)  # bits a second that a port at 100 Mb/s carries
SLOW_CARD_BITS = 100_000_000
ONE_WAY_NOTE, ONE_WAY_HURTS = 0.8, 0.5
SUM_NOTE = 0.85
# Beyond it a host's processors, not its port, may be what both directions share.
FAST_BYTES_PER_SECOND = 300e6
LONG_LATENCY_SECONDS = 0.010
MUCH_WAITING, SOME_WAITING = 0.5, 0.2
PORT_ADVICE = "ask the provider for the port's speed, look at `ethtool CARD` and the cable"


@dataclass(frozen=True, slots=True)
class Route:
    """The network that the hosts talk over."""

    label: str  # 10.0.0.0/24
    cards: Mapping[str, CardFacts]  # host -> its card there
    is_private: bool
    is_wanted: bool  # the user named it


@dataclass(frozen=True, slots=True)
class Outlook:
    """A step of the recipe on these hosts, as predicted."""

    method: str
    split: StepSplit
    sent_bytes: int  # out of each host


def outlook_of(recipe: Recipe, profile: Profile) -> Outlook | None:
    """What the profile promises for a run with this recipe; None where compute or link was not measured."""
    if profile.compute is None or (len(profile.hosts) > 1 and profile.link is None):
        return None
    setting = settled(setting_of_profile(recipe, profile))
    step = plan_step(setting)
    return Outlook(method_name(setting.recipe.sync), step.split, step.traffic.sent_bytes)


def check_route(route: Route) -> list[Check]:
    """The cards, their speeds, and who else may reach them."""
    cards = ", ".join(f"{host}: {card.name} {card.address}" for host, card in route.cards.items())
    checks = [Check("network", "ok", "", "network", f"{route.label} ({cards})")]
    checks.append(_check_private(route))
    for host, card in route.cards.items():
        if card.bits_per_second and card.bits_per_second <= SLOW_CARD_BITS and not card.is_virtual:
            evidence = f"{card.name} runs at {bits_text(card.bits_per_second)}"
            checks.append(Check("card-slow", "note", host, "the card is slow", evidence, PORT_ADVICE))
    return checks


def _check_private(route: Route) -> Check:
    if route.is_private:
        return Check("public-address", "ok", "", "addresses", "private: only these hosts' network reaches the run")
    level: Level = "note" if route.is_wanted else "hurts"
    evidence = ", ".join(f"{host}: {card.address}" for host, card in route.cards.items())
    advice = "what travels is neither encrypted nor signed: use a private network or a VPN (--subnet, --interface)"
    return Check("public-address", level, "", "the hosts talk over public addresses", evidence, advice)


def check_link(link: LinkProfile, hosts: Sequence[HostFacts]) -> list[Check]:
    """What the measurements say about the link by itself."""
    pairs = {(pair.source, pair.target): pair for pair in link.pairs}
    both_ways = [(pair, pairs[pair.target, pair.source]) for pair in link.pairs if pair.source < pair.target]
    checks = [check_card(link, host, hosts) for host in hosts if host.name in link.interfaces]
    checks += [check_one_way(there, back) for there, back in both_ways]
    checks += [check_sum(there, back) for there, back in both_ways]
    return [*checks, check_latency(link)]


def check_card(link: LinkProfile, host: HostFacts, hosts: Sequence[HostFacts]) -> Check:
    """A card that says 1 Gb/s and carries 94 Mb/s is held back by a port, a switch or a cable."""
    rates = [pair.alone_bytes_per_second for pair in link.pairs if host.name in (pair.source, pair.target)]
    best = max(rates, default=link.bytes_per_second)
    own = _card(host, link)
    others = [card for card in (_card(other, link) for other in hosts if other is not host) if card is not None]
    peers = [card.bits_per_second for card in others if card.bits_per_second]
    title, evidence = "speed of the card", f"carries {rate_text(best)}"
    if own is not None and own.bits_per_second:
        evidence = f"{own.name} says {bits_text(own.bits_per_second)}, {evidence}"
        if 8 * best < CARD_SHARE * min(own.bits_per_second, max(peers, default=own.bits_per_second)):
            is_formal = own.is_virtual or any(card.is_virtual for card in others)
            evidence += "; but a virtual card's own figure means little" if is_formal else ""
            title = "the link is slower than its card"
            return Check(
                "link-slower-than-card", "note" if is_formal else "hurts", host.name, title, evidence, PORT_ADVICE
            )
    elif FAST_ETHERNET[0] < 8 * best < FAST_ETHERNET[1]:
        evidence += ", as a port at 100 Mb/s does"
        return Check("link-slower-than-card", "note", host.name, title, evidence, PORT_ADVICE)
    return Check("link-slower-than-card", "ok", host.name, title, evidence)


def _card(host: HostFacts, link: LinkProfile) -> CardFacts | None:
    return next((card for card in host.cards if card.name == link.interfaces.get(host.name)), None)


def check_one_way(there: PairSpeed, back: PairSpeed) -> Check:
    """Both directions of one pair, each alone."""
    fast, slow = sorted((there, back), key=lambda pair: -pair.alone_bytes_per_second)
    share = slow.alone_bytes_per_second / max(fast.alone_bytes_per_second, 1.0)
    evidence = (
        f"{slow.source} to {slow.target} {rate_text(slow.alone_bytes_per_second)}, "
        f"back {rate_text(fast.alone_bytes_per_second)}"
    )
    if share >= ONE_WAY_NOTE:
        return Check("link-one-way", "ok", "", "each way alone", evidence)
    advice = f"the slow way decides: look at the port of {slow.source} (out) and of {slow.target} (in), and for duplex"
    level: Level = "hurts" if share < ONE_WAY_HURTS else "note"
    return Check("link-one-way", level, "", "one direction is slower", evidence, advice)


def check_sum(there: PairSpeed, back: PairSpeed) -> Check:
    """An exchange sends and receives at once; a port limited in the sum of both shows only then."""
    alone = min(there.alone_bytes_per_second, back.alone_bytes_per_second)
    both = min(pair.both_bytes_per_second or pair.alone_bytes_per_second for pair in (there, back))
    share = both / max(alone, 1.0)
    evidence = f"{there.source} and {there.target}: {rate_text(both)} each way at once, {rate_text(alone)} alone"
    if share >= SUM_NOTE:
        return Check("link-sum", "ok", "", "both ways at once", evidence)
    level: Level = "hurts" if share < SUM_SHARE and both < FAST_BYTES_PER_SECOND else "note"
    advice = "count on the slower figure: an exchange uses both ways at once; a port without this limit doubles it"
    return Check("link-sum", level, "", "both directions share one limit", evidence, advice)


def check_latency(link: LinkProfile) -> Check:
    evidence = f"{seconds_text(link.latency_seconds)} for a sum of one number"
    if link.latency_seconds <= LONG_LATENCY_SECONDS:
        return Check("latency", "ok", "", "latency", evidence)
    advice = "take machines of one place; an exchange in the background (sync.method = diloco) hides it"
    return Check("latency", "note", "", "latency is long", evidence, advice)


def check_outlook(outlook: Outlook, num_hosts: int) -> list[Check]:
    """Whether the link or the processors will decide how long a step takes."""
    if num_hosts == 1:
        return []
    split, share = outlook.split, outlook.split.waiting_share
    evidence = (
        f"{outlook.method}: {format_bytes(outlook.sent_bytes)} a step out of each host, "
        f"{seconds_text(split.total_seconds)} a step, {percent(share)} of it waiting for the exchange"
    )
    if share <= SOME_WAITING:
        return [Check("network-will-limit", "ok", "", "the link keeps up", evidence)]
    advice = "`dragoman plan` compares: a faster link, sync.method = auto, a larger batch.target_tokens, or one machine"
    level: Level = "hurts" if share > MUCH_WAITING else "note"
    return [Check("network-will-limit", level, "", "the network will limit the run", evidence, advice)]


def check_devices(hosts: Sequence[HostFacts], devices: Mapping[str, str]) -> list[Check]:
    """GPUs that NVML sees and torch does not use."""
    advice = "torch was installed without CUDA, or for another driver: `dragoman setup`, or DRAGOMAN_DEVICE is set"
    return [
        Check(
            "gpu-unused", "hurts", host.name, "torch does not use the GPU", f"{len(host.gpus)} GPUs, none used", advice
        )
        for host in hosts
        if host.gpus and devices.get(host.name) == "cpu"
    ]
