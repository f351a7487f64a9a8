"""A torch of a few hundred bytes for hosts of tests: it lends them the packages of this environment.

Its version is ours with a local tag that pip prefers to any other, so that no test ever installs the real one.
"""

import sysconfig
import zipfile
from pathlib import Path

from dragoman.launch.hosts.package import torch_version


def write_borrowed_wheels(folder: Path) -> Path:
    """A folder for `dragoman setup --wheels`, to be used with --no-deps."""
    folder.mkdir(parents=True, exist_ok=True)
    version = f"{torch_version()}+zzborrowed"
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("borrowed.pth", sysconfig.get_path("purelib") + "\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return folder
