"""What a client is told when it gets no translation: a status and one line."""

import math
from collections.abc import Mapping


class Problem(Exception):  # noqa: N818 - mostly nobody's error
    """Ends a request; `retry_seconds` says when it is worth another try."""

    def __init__(self, status: int, message: str, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_seconds = retry_seconds

    @property
    def headers(self) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        if self.retry_seconds is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_seconds)))
        if self.status in (408, 413):
            headers["Connection"] = "close"  # what is left of the body is not worth reading
        return headers


class ClientGone(Exception):  # noqa: N818 - nobody's error
    """Nobody waits for the answer any more."""
