"""Why one part of a step takes longer in one run than in another, in half a sentence; empty where no record tells.

Each function looks at two runs and the sign of their difference: what points the other way is no cause.
"""

import math

from dragoman.diagnose.comparison.side import Side
from dragoman.diagnose.link import Link
from dragoman.diagnose.split import Straggler, find_straggler
from dragoman.diagnose.wording import bits_text, percent, seconds_text
from dragoman.run.records import Manifest
from dragoman.units import format_bytes, format_count, plural

UNLIKE = 1.2  # a factor between two figures that can be a cause
OFTEN_LAST = 0.6  # of the steps: a rank that is last so often is the one to look at


def cause_of(part: str, reference: Side, other: Side, is_longer: bool) -> str:
    """'because its link carries 94 Mb/s and a's 940 Mb/s': `is_longer` says whether the part grew in `other`."""
    match part:
        case "transfer":
            return _transfer_cause(reference, other, is_longer)
        case "waiting":
            return _waiting_cause(reference, other, is_longer)
        case "data":
            return "because it waits for batches that are not ready" if is_longer else ""
        case "compute":
            return _compute_cause(reference, other, is_longer)
        case "optimizer":
            return _optimizer_cause(reference, other, is_longer)
        case _:
            return ""


def open_question(part: str, slower: Side) -> str:
    """What to look at where nothing recorded is a cause."""
    if part != "compute":
        return ""
    return f"which no setting explains: look for other load or lower clocks on {slower.name}'s machines"


def _transfer_cause(reference: Side, other: Side, is_longer: bool) -> str:
    ours, theirs = reference.facts, other.facts
    lone = _lone_cause(reference, other)
    if lone:
        return lone
    if ours.link is None and theirs.link is not None:
        return (
            f"because its ranks are on {theirs.num_hosts} hosts{_joined_by(theirs.link)}, and {reference.name}'s on one"
        )
    if theirs.link is None and ours.link is not None:
        return (
            f"because {reference.name}'s ranks are on {ours.num_hosts} hosts{_joined_by(ours.link)}, and its own on one"
        )
    if ours.link is None or theirs.link is None:
        return ""
    return _link_cause(reference, ours.link, other, theirs.link, is_longer)


def _link_cause(reference: Side, ours: Link, other: Side, theirs: Link, is_longer: bool) -> str:
    """The stronger of the two first: fewer or more bytes, a slower or faster link."""
    causes: list[tuple[float, str]] = []
    if ours.capacity and theirs.capacity:
        words = (
            f"its link carries {bits_text(8 * theirs.capacity)} and {reference.name}'s {bits_text(8 * ours.capacity)}"
        )
        causes.append((math.log(ours.capacity / theirs.capacity), words))
    if ours.step_bytes and theirs.step_bytes:
        kinds = (f" ({theirs.method})", f" ({ours.method})") if ours.method != theirs.method else ("", "")
        sent = f"it sends {format_bytes(theirs.step_bytes)} a step{kinds[0]}"
        words = f"{sent} and {reference.name} {format_bytes(ours.step_bytes)}{kinds[1]}"
        causes.append((math.log(theirs.step_bytes / ours.step_bytes), words))
    if _is_factor(reference.step_tokens or 0, other.step_tokens or 0, is_longer):
        causes.append((math.log((reference.step_tokens or 1) / (other.step_tokens or 1)), _step_size(reference, other)))
    sign = 1 if is_longer else -1
    found = sorted((-sign * size, words) for size, words in causes if sign * size > math.log(UNLIKE))
    if found:
        return f"because {' and '.join(words for _, words in found)}"
    if ours.method != theirs.method:
        return f"because its exchange is {theirs.method} and {reference.name}'s {ours.method}"
    if len(causes) > 1 and all(abs(size) <= math.log(UNLIKE) for size, _ in causes):
        slower = other if is_longer else reference
        return f"though links and bytes are alike: {slower.name}'s link may have been slower or shared during the run"
    return ""


def _waiting_cause(reference: Side, other: Side, is_longer: bool) -> str:
    side = other if is_longer else reference
    late = straggler_of(side)
    if late is None or late.last_share < OFTEN_LAST or late.late_seconds <= 0:
        return _lone_cause(reference, other)
    whose = _whose(side, other)
    name = f"host {late.host}" if late.is_whole_host else f"rank {late.rank} on {late.host}"
    doing = "waits for data and computes" if late.is_data else "computes"
    own = f"{doing} {seconds_text(late.own_seconds)} a step, the others {seconds_text(late.others_seconds)}"
    last = f"is last in {percent(late.last_share)} of the steps, by {seconds_text(late.late_seconds)}"
    return f"because {whose} {name} {last} (it {own})"


def _lone_cause(reference: Side, other: Side) -> str:
    """One against several: a single rank neither sends nor waits."""
    counts = (reference.facts.num_ranks, other.facts.num_ranks)
    if min(counts) > 1 or max(counts) < 2:
        return ""
    lone = other if counts[1] < 2 else reference
    return f"because {_whose(lone, other)} one rank has nobody to exchange with"


def straggler_of(side: Side) -> Straggler | None:
    return find_straggler(side.facts.grid, side.facts.has_clocks) if side.facts.grid is not None else None


def _compute_cause(reference: Side, other: Side, is_longer: bool) -> str:
    ours, theirs = reference.facts.run.manifest, other.facts.run.manifest
    by_size = _parameters_cause(reference, other, is_longer)
    if by_size:
        return by_size
    if _is_factor(ours.world_size, theirs.world_size, is_longer):
        spread = f"because it spreads a step over {plural(theirs.world_size, 'rank')}"
        return f"{spread} and {reference.name} over {ours.world_size}"
    devices = (_device(ours), _device(theirs))
    if devices[0] != devices[1]:
        return f"because it computes on {devices[1]} and {reference.name} on {devices[0]}"
    if ours.precision != theirs.precision:
        return f"because it computes in {theirs.precision} and {reference.name} in {ours.precision}"
    crowds = (_ranks_per_host(ours), _ranks_per_host(theirs))
    if ours.device == "cpu" and _is_factor(crowds[1], crowds[0], is_longer):
        its, others = plural(crowds[1], "rank"), crowds[0]
        verb = "share" if crowds[1] > 1 else "has"
        return f"because {its} {verb} a host's cores and {others} do in {reference.name}"
    return ""


def _optimizer_cause(reference: Side, other: Side, is_longer: bool) -> str:
    """An update costs the same whatever the step holds."""
    if _is_factor(reference.step_tokens or 0, other.step_tokens or 0, is_longer):
        return f"because {_step_size(reference, other)}"
    return _parameters_cause(reference, other, is_longer)


def _step_size(reference: Side, other: Side) -> str:
    return f"its step holds {other.step_tokens:,.0f} target tokens and {reference.name}'s {reference.step_tokens:,.0f}"


def _parameters_cause(reference: Side, other: Side, is_longer: bool) -> str:
    ours, theirs = (side.facts.run.manifest.num_parameters for side in (reference, other))
    if not _is_factor(theirs, ours, is_longer):
        return ""
    return f"because its model has {format_count(theirs)} parameters and {reference.name}'s {format_count(ours)}"


def _is_factor(grown: float, before: float, is_longer: bool) -> bool:
    """Whether the first over the second is large enough, and on the side of the difference."""
    if grown <= 0 or before <= 0:
        return False
    return (grown / before if is_longer else before / grown) > UNLIKE


def _ranks_per_host(manifest: Manifest) -> int:
    return max((host.num_ranks for host in manifest.hosts), default=0)


def _device(manifest: Manifest) -> str:
    names = dict.fromkeys(host.gpus[0] if host.gpus else host.cpu or manifest.device for host in manifest.hosts)
    return " and ".join(names) if manifest.hosts else manifest.device


def _joined_by(link: Link) -> str:
    return f" joined by {bits_text(8 * link.capacity)}" if link.capacity else ""


def _whose(side: Side, other: Side) -> str:
    return "its" if side is other else f"{side.name}'s"
