"""One host of a run that goes on: its newest sample, and what its processors and its link did so far."""

from collections import deque
from collections.abc import Iterable, Sequence

from dragoman.run.samples import CardSample, SystemSample
from dragoman.web.watch.curve import Curve

# A step sends in bursts: a single second says little.
NUM_RECENT = 5
# A card that is not said to carry the exchange counts if it is no bridge, tunnel or loopback of this machine.
NOT_OURS = ("lo", "docker", "br-", "veth", "virbr", "tun", "tap")


class HostNow:
    """Fed with samples in the order of time."""

    def __init__(self, name: str, interfaces: Sequence[str]) -> None:
        self.name = name
        self.interfaces = tuple(interfaces)
        self.recent: deque[SystemSample] = deque(maxlen=NUM_RECENT)
        self.running_seconds = 0.0  # the gaps between attempts left out
        self.sent = Curve()
        self.busy = Curve()

    def add(self, sample: SystemSample) -> None:
        self.recent.append(sample)
        if sample.interval_seconds <= 0:
            return
        self.running_seconds += sample.interval_seconds
        self.sent.add(self.running_seconds, self._rate("sent_bytes", [sample]) or 0.0)
        busy = _busy(sample)
        if busy is not None:
            self.busy.add(self.running_seconds, busy)

    @property
    def sample(self) -> SystemSample | None:
        return self.recent[-1] if self.recent else None

    @property
    def sent_bytes_per_second(self) -> float | None:
        return self._rate("sent_bytes", self.recent)

    @property
    def received_bytes_per_second(self) -> float | None:
        return self._rate("received_bytes", self.recent)

    @property
    def gpu_busy(self) -> float | None:
        """Mean of its GPUs; None where there is none, or none that says so."""
        known = [gpu.busy for gpu in self.sample.gpus if gpu.busy is not None] if self.sample else []
        return sum(known) / len(known) if known else None

    @property
    def cpu_busy(self) -> float | None:
        return self.sample.cpu_busy if self.sample else None

    def _rate(self, direction: str, samples: Iterable[SystemSample]) -> float | None:
        known = [sample for sample in samples if sample.interval_seconds > 0]
        seconds = sum(sample.interval_seconds for sample in known)
        num_bytes = sum(getattr(card, direction) for sample in known for card in self._cards(sample))
        return num_bytes / seconds if seconds else None

    def _cards(self, sample: SystemSample) -> list[CardSample]:
        if self.interfaces:
            return [card for card in sample.cards if card.name in self.interfaces]
        return [card for card in sample.cards if not card.name.startswith(NOT_OURS)]


def _busy(sample: SystemSample) -> float | None:
    """Of the processors that compute: the GPUs, or else the cores."""
    known = [gpu.busy for gpu in sample.gpus if gpu.busy is not None]
    return sum(known) / len(known) if known else sample.cpu_busy
