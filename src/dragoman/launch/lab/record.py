"""What a running lab is, as it stands in its folder (`lab.json`): enough to enter its hosts from anywhere."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.launch.lab.files import RECORD


@dataclass(frozen=True)
class LabRecord:
    switch_pid: int
    # Identity of the lab's PIDs: whoever has the same is inside.
    pid_namespace: str
    # Host -> its process, as the lab counts them.
    pids: dict[str, int]
    cores: dict[str, tuple[int, ...]]
    home: str
    user: str
    shell: str


def write_record(folder: Path, record: LabRecord) -> None:
    (folder / RECORD).write_text(json.dumps(asdict(record)))


def read_record(folder: str | Path) -> LabRecord:
    fields: dict[str, Any] = json.loads((Path(folder) / RECORD).read_text())
    fields["cores"] = {name: tuple(cores) for name, cores in fields["cores"].items()}
    return LabRecord(**fields)
