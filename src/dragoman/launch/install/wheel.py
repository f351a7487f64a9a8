"""A wheel of the running package, made from its installed files: no build tool, and the same bytes every time."""

import base64
import csv
import hashlib
import io
import zipfile
from importlib import metadata
from pathlib import Path

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.launch.hosts.package import package_files

WHEEL_NAME = f"dragoman-{__version__}-py3-none-any.whl"
_DIST_INFO = f"dragoman-{__version__}.dist-info"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # a zip file knows no earlier time
_WHEEL = "Wheel-Version: 1.0\nGenerator: dragoman\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(folder: Path) -> Path:
    """Write the wheel into a folder. Works for an editable install too: the code is taken from where it runs."""
    contents = {name: path.read_bytes() for name, path in package_files()}
    contents |= {
        f"{_DIST_INFO}/METADATA": _installed_text("METADATA"),
        f"{_DIST_INFO}/WHEEL": _WHEEL.encode(),
        f"{_DIST_INFO}/entry_points.txt": _installed_text("entry_points.txt"),
    }
    contents[f"{_DIST_INFO}/RECORD"] = _record(contents)
    wheel = folder / WHEEL_NAME
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return wheel


def _record(contents: dict[str, bytes]) -> bytes:
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", len(data)])
    writer.writerow([f"{_DIST_INFO}/RECORD", "", ""])
    return rows.getvalue().encode()


def _installed_text(name: str) -> bytes:
    try:
        text = metadata.distribution("dragoman").read_text(name)
    except metadata.PackageNotFoundError:
        text = None
    if text is None:
        raise DragomanError("this Dragoman runs from loose files, not from an installed package", "pip install it here")
    return text.encode()
