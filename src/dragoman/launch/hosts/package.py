"""The running Dragoman as files: what it consists of, and a digest that tells this code from any other."""

import hashlib
import platform
from importlib import metadata
from pathlib import Path

import dragoman


def package_files() -> list[tuple[str, Path]]:
    """(name as in a wheel, file) of everything that belongs to the package, in a fixed order."""
    root = Path(dragoman.__file__).parent
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted((f"dragoman/{path.relative_to(root).as_posix()}", path) for path in files)


def code_digest() -> str:
    """Equal for equal code: two states of one version number are told apart by it."""
    digest = hashlib.sha256()
    for name, path in package_files():
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """What must agree between hosts. Read from the installed packages' data: nothing is imported."""
    return {
        "dragoman": dragoman.__version__,
        "code": code_digest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "torch": torch_version(),
    }


def torch_version() -> str:
    """Without the local tag: `2.13.0+cu130` and `2.13.0+cpu` understand each other. Empty where there is none."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""
