"""Whose pages may ask a server: origins as a browser names them."""

import re
from collections.abc import Sequence

from dragoman.errors import DragomanError

_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s?#@]+")


def checked_origins(given: Sequence[str]) -> Sequence[str]:
    """A browser sends scheme, host and port, and nothing behind: anything else would never match."""
    for origin in given:
        if not _ORIGIN.fullmatch(origin):
            raise DragomanError(
                f"--cors {origin!r} is not an origin", "write it as https://example.org or http://localhost:8000, or *"
            )
    return given
