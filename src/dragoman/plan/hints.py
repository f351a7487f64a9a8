"""What about a measured link is worth a look at the provider's settings. Thresholds that all verdicts share."""

from dragoman.run.promise import LinkProfile
from dragoman.units import format_bit_rate

CARD_SHARE = 0.5  # of what a card says: a link that carries less is held back by something else
SUM_SHARE = 0.65  # both ways at once over one way alone: less, and the directions share one limit


def link_hints(link: LinkProfile) -> list[str]:
    """Half a sentence each."""
    cards = link.card_bits_per_second.values()
    alone = link.alone_bytes_per_second
    best = max(link.bytes_per_second, alone or 0.0)
    hints: list[str] = []
    if cards and 8 * best < CARD_SHARE * min(cards):
        hints.append(f"the card says {format_bit_rate(min(cards))}, check the provider's port speed")
    if alone and link.bytes_per_second < SUM_SHARE * alone:
        hints.append(f"one way alone it carries {format_bit_rate(8 * alone)}: both directions share one limit")
    return hints
