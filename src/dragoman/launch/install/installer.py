"""Installs Dragoman on a host that has none yet: this very text is sent there and run by whatever Python there is.

Standard library only. Reads one line of JSON and then a tar stream of wheels; says in JSON lines what it does.
"""

import collections
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

PIP_SECONDS = 3600.0
TAIL_LINES = 12


class InstallError(Exception):
    """Something the user can mend: what, how, and the last lines of a tool."""

    def __init__(self, message: str, hint: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.answer = {"ok": False, "message": message, "hint": hint, "tail": list(tail)}


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def run(command: Sequence[str], problem: str, hint: str) -> None:
    """Run a tool, pass its lines on, and keep its last ones for when it fails."""
    tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
    is_late = threading.Event()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )

    def end() -> None:
        is_late.set()
        process.kill()

    limit = threading.Timer(PIP_SECONDS, end)
    limit.daemon = True
    limit.start()
    try:
        with process:  # even where nobody listens any more, the tool comes to its end, or to its limit
            for line in process.stdout or ():
                tail.append(line.rstrip())
                say(line=line.strip()[:100])
    finally:
        limit.cancel()
    if process.returncode and is_late.is_set():
        raise InstallError(f"{problem}: it took longer than {PIP_SECONDS / 60:.0f} minutes", hint, tail)
    if process.returncode:
        raise InstallError(problem, hint, tail)


@contextlib.contextmanager
def alone(home: Path) -> Generator[None]:
    """Two installations into one folder would break each other."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InstallError("another `dragoman setup` works there", "wait until it is done") from None
        yield


def unpack(folder: Path) -> None:
    """The wheels, from standard input; only plain files, all in one folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as tar:
        for info in tar:
            source = tar.extractfile(info)
            if source is not None:
                with (folder / Path(info.name).name).open("wb") as file:
                    shutil.copyfileobj(source, file)


def make_venv(venv: Path) -> str:
    """The virtual environment's Python; an old one stays if it has this Python's version and pip."""
    python = venv / "bin" / "python"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    # A link may lead to a Python that is gone: then it is made anew.
    is_whole = (venv / "lib" / f"python{version}" / "site-packages" / "pip").is_dir() and python.exists()
    if not is_whole:
        say(stage=f"making a virtual environment with Python {version}")
        shutil.rmtree(venv, ignore_errors=True)
        hint = f"install its venv module there: sudo apt-get install python{version}-venv"
        run([sys.executable, "-m", "venv", str(venv)], "cannot make a virtual environment", hint)
    return str(python)


def install(plan: dict[str, Any]) -> None:
    """Dragoman's wheel and torch; then the wheel alone by force, for pip keeps what has the same version number."""
    home = Path.home() / ".dragoman"
    home.mkdir(exist_ok=True)
    wheels, ready = home / "wheels", home / "venv" / "ready"
    with alone(home):
        unpack(wheels)
        if plan["python"] is None:
            ready.unlink(missing_ok=True)
            python = make_venv(home / "venv")
        else:
            python = os.path.expanduser(plan["python"])  # noqa: PTH111 - as the shell reads it
        offline = ["--no-index", "--find-links", str(wheels)] if plan["is_offline"] else []
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
        wheel, torch = str(wheels / plan["wheel"]), f"torch=={plan['torch']}"
        say(stage=f"installing Dragoman and torch {plan['torch']}")
        hint = "mend that, or give pip other options with --pip-args; without internet there: --wheels DIR"
        run([*pip, *offline, *plan["pip_args"], wheel, torch], "pip failed", hint)
        run([*pip, "--no-index", "--no-deps", "--force-reinstall", wheel], "pip failed", hint)
        shutil.rmtree(wheels)
        if plan["python"] is None:
            ready.write_text(json.dumps(plan) + "\n")


def main() -> None:
    try:
        say(**outcome())
    except BrokenPipeError:  # nobody listens any more, and Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def outcome() -> dict[str, Any]:
    """The last word: that all is well, or what is wrong."""
    try:
        install(json.loads(sys.stdin.buffer.readline()))
    except InstallError as error:
        return error.answer
    except (json.JSONDecodeError, tarfile.TarError):
        hint = "give the same command again"
        return {"ok": False, "message": "what was sent did not arrive whole", "hint": hint, "tail": []}
    except OSError as error:
        problem = f"{error.filename or 'the disk'}: {error.strerror}"
        return {"ok": False, "message": problem, "hint": "mend that", "tail": []}
    return {"ok": True}


if __name__ == "__main__":
    main()
