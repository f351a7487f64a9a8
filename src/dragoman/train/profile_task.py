"""What `dragoman doctor` tells the ranks that measure for it, and how their progress is known. No torch."""

import json
from dataclasses import asdict, dataclass
from typing import Any

RANK_MODULE = "dragoman.train.profile_rank"
MARK = "doctor> "  # before each line that says what is being measured


@dataclass(frozen=True)
class ProfileTask:
    """Crosses to the ranks as JSON."""

    out: str  # a file on the first host
    recipe: dict[str, Any] | None = None  # None: the link alone
    data: str | None = None  # None: synthetic text
    is_quiet: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_task(text: str) -> ProfileTask:
    return ProfileTask(**json.loads(text))
