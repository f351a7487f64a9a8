"""The hash by which files are told apart, wherever they lie."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Of all bytes of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
