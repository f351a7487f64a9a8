"""What the page is told at each look: one JSON value, made when it is asked for and not more than once a second."""

import dataclasses
import math
import threading
import time
from collections.abc import Sequence
from typing import Any

from dragoman.web.watch.curve import Point
from dragoman.web.watch.figures import Chart, charts, findings, step_line, tiles
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.pace import done_share
from dragoman.web.watch.place import Place
from dragoman.web.watch.state import ENDED, state_of
from dragoman.web.watch.vitals import Vitals

EVERY_SECONDS = 1.0
MAX_FINDINGS = 3
DIGITS = 3  # after the first of the largest value


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """`words` changes at every look; `charts` only with the records, and so does `num_news`."""

    words: dict[str, Any]
    charts: list[dict[str, Any]]
    num_news: int
    is_ended: bool


class Looker:
    """Looks at the run from a thread of its own, only as long as somebody asks."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.live = LiveRun(place.folder)
        self._condition = threading.Condition()
        self._is_wanted = self._is_closing = False
        self._snapshot: Snapshot | None = None
        self._num_looks = 0
        self._thread = threading.Thread(target=self._work, name="looker", daemon=True)
        self._thread.start()

    def latest(self, patience_seconds: float = 0.8) -> Snapshot | None:
        """The next look's, or the last one's where that takes longer; None before the first."""
        with self._condition:
            seen = self._num_looks
            self._is_wanted = True
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._num_looks > seen, patience_seconds)
            return self._snapshot

    def close(self) -> None:
        with self._condition:
            self._is_closing = True
            self._condition.notify_all()
        self._thread.join(2.0)  # a host that does not answer is not waited for
        self.place.close()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_wanted or self._is_closing)
                if self._is_closing:
                    return
                self._is_wanted = False
            start = time.monotonic()
            snapshot = self._look()
            with self._condition:
                self._snapshot = snapshot
                self._num_looks += 1
                self._condition.notify_all()
                rest = EVERY_SECONDS - (time.monotonic() - start)
                self._condition.wait_for(lambda: self._is_closing, max(0.0, rest))

    def _look(self) -> Snapshot:
        try:
            vitals = self.place.look()
            is_new = self.live.refresh()
        except Exception as error:  # a page that stands still without a word would be worse
            vitals, is_new = Vitals(False, time.time(), problem=f"{type(error).__name__}: {error}"), False
        before = self._snapshot
        drawn = before.charts if before and not is_new else [_plain_chart(chart) for chart in charts(self.live)]
        return take_snapshot(self.live, vitals, self.place.name, drawn)


def take_snapshot(live: LiveRun, vitals: Vitals, name: str, drawn: list[dict[str, Any]]) -> Snapshot:
    state = state_of(live, vitals)
    words = {
        "run": live.manifest.name if live.manifest else name,
        "place": name,
        "state": dataclasses.asdict(state),
        "step": step_line(live),
        "share": done_share(live),
        "tiles": [dataclasses.asdict(tile) for tile in tiles(live, state.kind)],
        "findings": [{"code": code, "text": text, "step": step} for code, text, step in findings(live)[:MAX_FINDINGS]],
    }
    return Snapshot(words, drawn, live.num_news, state.kind in ENDED)


def _plain_chart(chart: Chart) -> dict[str, Any]:
    values: dict[str, Any] = {field.name: getattr(chart, field.name) for field in dataclasses.fields(chart)}
    values["series"] = [{"name": item.name, "points": short_points(item.points)} for item in chart.series]
    return values


def short_points(points: Sequence[Point]) -> list[list[float]]:
    """With as many digits as can be seen: a long run's curves are sent every other second."""
    largest = max((point[3] for point in points), default=0.0)
    digits = DIGITS - math.floor(math.log10(largest)) if largest > 0 else DIGITS
    return [
        [round(x, 1), round(low, digits), round(mean, digits), round(high, digits)] for x, low, mean, high in points
    ]
