"""Counters for Prometheus, in a registry of their own."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """What happened since the server started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        common = {"registry": self._registry, "namespace": "dragoman"}
        self._requests = Counter("requests", "Requests answered.", ["path", "status"], **common)
        self._seconds = Histogram("request_seconds", "Time to answer.", ["path"], buckets=_SECONDS, **common)
        self._sentences = Counter("sentences", "Sentences translated.", ["pair"], **common)
        self._batches = Histogram("batch_sentences", "Sentences in a batch.", ["pair"], buckets=_SIZES, **common)
        self._queue = Gauge("queue_sentences", "Sentences that wait.", ["pair"], **common)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, pair: str, num_sentences: int) -> None:
        self._sentences.labels(pair).inc(num_sentences)
        self._batches.labels(pair).observe(num_sentences)

    def watch_queue(self, pair: str, length: Callable[[], float]) -> None:
        self._queue.labels(pair).set_function(length)

    def text(self) -> bytes:
        return generate_latest(self._registry)
