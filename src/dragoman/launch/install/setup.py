"""Puts this very Dragoman, and torch, on hosts that lack them: near side of `installer`, all hosts side by side."""

import json
import shlex
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, cast

from dragoman.errors import DragomanError
from dragoman.launch.copying.transfer import reading
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.package import torch_version, versions
from dragoman.launch.hosts.session import HostSession, problem_line, side_by_side
from dragoman.launch.hosts.ssh import (
    END_SECONDS,
    Tail,
    UnreachableError,
    end_ssh,
    explain_failure,
    start_ssh,
)
from dragoman.launch.install import installer
from dragoman.launch.install.wheel import WHEEL_NAME, build_wheel
from dragoman.launch.json_lines import json_object

MUST_AGREE = ("dragoman", "code", "torch", "python")
NO_PYTHON_CODE = 66  # of the shell snippet below

Say = Callable[[Host, str], None]


@dataclass(frozen=True)
class Order:
    """What to install. `wheels` is a folder of wheels to use instead of the internet."""

    wheels: Path | None
    pip_args: tuple[str, ...]


def set_up_hosts(hosts: Sequence[Host], order: Order, say: Say, say_line: Say) -> None:
    """Install on every host; those that fail become one error, the others are ready all the same."""
    if not torch_version():
        raise DragomanError("this machine has no torch, so its version is not known", "pip install torch here")
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        wheels = [wheel, *_wheels_in(order.wheels)]
        tasks = [lambda host=host: _set_up(host, wheels, order, say, say_line) for host in hosts]
        answers = side_by_side(tasks)
    errors = [answer for answer in answers if isinstance(answer, DragomanError)]
    if errors:
        lines = "\n  ".join([f"{len(errors)} of {len(hosts)} hosts failed", *map(problem_line, errors)])
        raise DragomanError(lines, "mend this and give the same command again: hosts that are ready take a second")


def _wheels_in(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    found = sorted(folder.glob("*.whl"))
    if not found:
        needs = [need for need in metadata.requires("dragoman") or [] if "extra ==" not in need]
        command = shlex.join(["pip", "download", "-d", str(folder), f"torch=={torch_version()}", *needs])
        raise DragomanError(f"{folder} holds no wheels", f"fill it where there is internet: {command}")
    return [wheel for wheel in found if wheel.name != WHEEL_NAME]


def _set_up(host: Host, wheels: Sequence[Path], order: Order, say: Say, say_line: Say) -> None:
    try:
        if not _difference(host):
            say(host, "already there")
            return
        _install(host, wheels, order, say, say_line)
        difference = _difference(host)
        if difference:
            raise DragomanError(f"is installed, but {difference}", "look at ~/.dragoman on that host")
    except DragomanError as error:
        say(host, "failed")
        raise DragomanError(f"{host.name}: {error.message}", error.hint) from None
    say(host, "ready")


def _difference(host: Host) -> str:
    """What differs from this machine, as the host's own Dragoman says; empty where nothing does."""
    session = HostSession(host)
    try:
        session.open()
        there, here = session.call("facts")["versions"], versions()
        wrong = [key for key in MUST_AGREE if there[key] != here[key]]
        return ", ".join(f"its {key} is {there[key] or 'missing'}, not {here[key]}" for key in wrong)
    except UnreachableError:
        raise session.failure or DragomanError("cannot be reached") from None
    except DragomanError as error:
        return error.message
    finally:
        session.close()


def _install(host: Host, wheels: Sequence[Path], order: Order, say: Say, say_line: Say) -> None:
    """Send the installer as the command, and the plan and the wheels as its input; read what it says."""
    process = start_ssh(host, installer_command(host))
    complaints = Tail(process)
    failures: list[DragomanError] = []
    code: int | None = None
    try:
        sender = threading.Thread(target=_send, args=(process, _plan(host, order), wheels, failures), daemon=True)
        sender.start()
        answer = _listen(host, cast("IO[bytes]", process.stdout), say, say_line)
        with suppress(subprocess.TimeoutExpired):  # a client that stays takes nothing back of what was answered
            code = process.wait(END_SECONDS)
    finally:
        end_ssh(process)
    if failures:
        raise failures[0]
    if answer is None:
        raise _explain(host, code, complaints.text())
    if not answer["ok"]:
        tail = "".join(f"\n    {line}" for line in answer["tail"])
        raise DragomanError(f"{answer['message']}{tail}", answer["hint"])


def _plan(host: Host, order: Order) -> dict[str, Any]:
    is_offline = order.wheels is not None
    return {
        "wheel": WHEEL_NAME,
        "torch": torch_version(),
        "python": host.python,
        "is_offline": is_offline,
        "pip_args": list(order.pip_args),
    }


def _send(
    process: subprocess.Popen[bytes], plan: dict[str, Any], wheels: Sequence[Path], failures: list[DragomanError]
) -> None:
    """The plan and the wheels; a wheel that cannot be read goes into `failures` and ends the call."""
    stdin = cast("IO[bytes]", process.stdin)
    try:
        stdin.write(json.dumps(plan).encode() + b"\n")
        with tarfile.open(fileobj=stdin, mode="w|", dereference=True) as tar:
            for wheel in wheels:
                with reading(wheel):
                    tar.add(wheel, wheel.name)
    except DragomanError as error:
        failures.append(error)
        process.kill()  # nothing can come of an installation without that wheel
    except (OSError, ValueError):
        pass  # whoever listens says why it left, and our end may be closed by then
    finally:
        with suppress(OSError, ValueError):
            stdin.close()


def _listen(host: Host, stream: IO[bytes], say: Say, say_line: Say) -> dict[str, Any] | None:
    """Pass on what the installer says; its last word, or None where it has none."""
    for line in stream:
        values = json_object(line)
        if values is None:
            continue
        if "stage" in values:
            say(host, values["stage"])
        elif "line" in values:
            say_line(host, values["line"])
        elif "ok" in values:
            return values
    return None


def installer_command(host: Host) -> str:
    """A shell command that finds a Python of our minor version on the host and runs the installer in it."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    named = f'"$HOME/.pyenv/versions/{version}."*/bin/python "$HOME"/miniconda3/bin/python /opt/conda/bin/python'
    ours = shlex.quote(str(Path(sys.base_prefix) / "bin" / f"python{version}"))  # machines may be made alike
    places = f"python{version} python3 python /usr/local/bin/python{version} {ours} {named}"
    if host.python is not None:
        in_home = host.python.removeprefix("~/")
        places = shlex.quote(in_home) if in_home == host.python else f"~/{shlex.quote(in_home)}"
    test = f"import sys; sys.exit(sys.version_info[:2] != ({version.replace('.', ', ')}))"
    script = (
        f'for p in {places}; do if "$p" -c {shlex.quote(test)} 2>/dev/null; then '
        f'exec "$p" -u -c {shlex.quote(Path(installer.__file__).read_text(encoding="utf-8"))}; fi; done; '
        f"exit {NO_PYTHON_CODE}"
    )
    return f"exec sh -c {shlex.quote(script)}"


def _explain(host: Host, code: int | None, stderr: str) -> DragomanError:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if code == NO_PYTHON_CODE:
        hint = f"install it there: sudo apt-get install python{version} python{version}-venv"
        return DragomanError(f"has no Python {version}, the version of this machine", hint)
    return explain_failure(host, code, stderr)
