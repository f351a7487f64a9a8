"""Processes talk to each other in lines of JSON; other words may stand between them."""

import json
from typing import Any, cast


def json_object(line: bytes) -> dict[str, Any] | None:
    """What the other side said in this line; None for what a login shell or a library printed, even if that is JSON."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", values) if isinstance(values, dict) else None
