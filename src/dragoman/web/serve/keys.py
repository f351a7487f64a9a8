"""API keys: who may ask. Only their hashes are kept."""

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.web.serve.problem import Problem


class Keys:
    """None of them: everybody may ask."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._hashes = [_hash(key) for key in keys]

    @property
    def are_needed(self) -> bool:
        return bool(self._hashes)

    def check(self, key: str | None) -> None:
        if not self._hashes:
            return
        if not key:
            raise Problem(403, "this server needs an api_key")
        # All of them, always: how long it takes shall not tell how near a guess is.
        given = _hash(key)
        if not any([hmac.compare_digest(given, known) for known in self._hashes]):  # noqa: C419
            raise Problem(403, "this api_key is not valid")


def read_keys(path: Path) -> Keys:
    """One a line; what follows a `#` is a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not valid UTF-8"
        raise DragomanError(f"cannot read the keys in {path}: {reason}", "name a text file, one key a line") from None
    keys = [key for line in lines if (key := line.partition("#")[0].strip())]
    if not keys:
        raise DragomanError(f"{path} has no key in it", "write one key a line, or leave --api-keys out")
    return Keys(keys)


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()
