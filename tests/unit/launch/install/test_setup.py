"""Dragoman on hosts that have none: the wheel, the installer, and what it says when it fails."""

import fcntl
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from borrowed_wheels import write_borrowed_wheels
from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.package import code_digest, package_files, torch_version
from dragoman.launch.install import installer, setup
from dragoman.launch.install.setup import Order, installer_command, set_up_hosts
from dragoman.launch.install.wheel import build_wheel
from small_runs import dragoman_here
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def homes(tmp_path, monkeypatch) -> Path:
    """Hosts a and b without any Dragoman: our own Python is not at the same path there."""
    stand_in_hosts(tmp_path, monkeypatch, "a", "b")
    # An environment that is active here would be found there, with Dragoman in it.
    folders = os.environ["PATH"].split(os.pathsep)
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join(folder for folder in folders if folder != own))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    return tmp_path


def set_up(names: str, wheels: Path | None = None, *pip_args: str) -> list[str]:
    said: list[str] = []
    hosts = [Host(name, name) for name in names.split(",")]
    set_up_hosts(
        hosts, Order(wheels, pip_args), lambda host, text: said.append(f"{host.name}: {text}"), lambda *_: None
    )
    return said


def test_the_wheel_holds_the_package_and_is_the_same_every_time(tmp_path):
    wheel = build_wheel(tmp_path)
    first = wheel.read_bytes()
    assert build_wheel(tmp_path).read_bytes() == first
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        record = archive.read(next(name for name in names if name.endswith("/RECORD"))).decode()
    assert {name for name, _ in package_files()} < names
    assert "dragoman/recipes/tiny.toml" in names and not [name for name in names if "__pycache__" in name]
    assert len(record.splitlines()) == len(names)


def test_the_wheel_can_be_installed_and_is_this_code(tmp_path):
    wheel = build_wheel(tmp_path)
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    code = "from dragoman.launch.hosts import package; import dragoman; print(dragoman.__file__, package.code_digest())"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(target)}, capture_output=True, text=True)
    file, digest = done.stdout.split()
    assert file.startswith(str(target)) and digest == code_digest()
    assert "dragoman" in {path.name for path in (target / "bin").iterdir()}


def test_a_host_gets_dragoman_and_the_second_time_it_is_there(homes, tmp_path):
    """A real virtual environment and a real wheel; torch is a stand-in that lends it our packages."""
    wheels = write_borrowed_wheels(tmp_path / "wheels")
    said = set_up("a", wheels, "--no-deps")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert said == [
        f"a: making a virtual environment with Python {version}",
        f"a: installing Dragoman and torch {torch_version()}",
        "a: ready",
    ]
    home = homes / "a" / ".dragoman"
    assert (home / "venv" / "ready").is_file() and not (home / "wheels").exists()
    assert set_up("a", wheels, "--no-deps") == ["a: already there"]

    # Half of it counts for nothing, and what is whole is not made again.
    (home / "venv" / "ready").unlink()
    assert set_up("a", wheels, "--no-deps") == [f"a: installing Dragoman and torch {torch_version()}", "a: ready"]

    # Another code under the same version number is replaced.
    package = home / "venv" / "lib" / f"python{version}" / "site-packages" / "dragoman"
    (package / "units.py").write_text((package / "units.py").read_text() + "\n# other\n")
    assert set_up("a", wheels, "--no-deps")[-1] == "a: ready"


def test_what_pip_says_when_it_fails(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "other-1.0-py3-none-any.whl").touch()
    with pytest.raises(DragomanError, match="1 of 1 hosts failed") as raised:
        set_up("a", wheels)
    assert "a: pip failed" in raised.value.message and "ERROR: " in raised.value.message
    assert not (homes / "a" / ".dragoman" / "venv" / "ready").exists()


def test_one_host_that_fails_is_named_and_the_others_go_on(tmp_path, monkeypatch):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    said: list[str] = []
    hosts = [Host("a", "a"), Host("zz", "zz")]
    with pytest.raises(DragomanError, match="1 of 2 hosts failed") as raised:
        order = Order(write_borrowed_wheels(tmp_path / "wheels"), ("--no-deps",))
        set_up_hosts(hosts, order, lambda host, text: said.append(f"{host.name}: {text}"), lambda *_: None)
    assert "zz: its name does not resolve" in raised.value.message
    assert sorted(said) == ["a: already there", "zz: failed"]


def test_a_host_without_our_python(homes):
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    host = Host("a", "a", python="/nowhere/python")
    with pytest.raises(DragomanError, match=f"has no Python {version}"):
        set_up_hosts([host], Order(None, ()), lambda *_: None, lambda *_: None)


def test_a_second_installer_is_turned_away(homes, tmp_path):
    folder = homes / "a" / ".dragoman"
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DragomanError, match="another `dragoman setup` works there"):
            set_up("a", write_borrowed_wheels(tmp_path / "wheels"))


@pytest.mark.timeout(60)
def test_a_wheel_that_cannot_be_read_is_named(homes, tmp_path):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "gone-1.0-py3-none-any.whl").symlink_to("nowhere.whl")
    with pytest.raises(DragomanError, match="1 of 1 hosts failed") as raised:
        set_up("a", wheels)
    assert f"a: cannot read {wheels}/gone-1.0-py3-none-any.whl: No such file" in raised.value.message


def test_a_wheel_may_be_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"wheel")
    (tmp_path / "x.whl").symlink_to("real")
    (tmp_path / "there").mkdir()
    with subprocess.Popen(
        ["sh", "-c", f"read plan; exec tar -xf - -C {tmp_path}/there"], stdin=subprocess.PIPE
    ) as process:
        failures: list[DragomanError] = []
        setup._send(process, {}, [tmp_path / "x.whl"], failures)
    assert not failures and not (tmp_path / "there" / "x.whl").is_symlink()
    assert (tmp_path / "there" / "x.whl").read_bytes() == b"wheel"


PLAN = json.dumps({"wheel": "x", "torch": "1", "python": None, "is_offline": True, "pip_args": []}).encode() + b"\n"


def install_from(stream: bytes, home: Path, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[bytes]":
    """The installer as a host runs it, with this as what it is sent."""
    return subprocess.run(
        [sys.executable, installer.__file__],
        input=stream,
        stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, "HOME": str(home)}, timeout=60,
    )  # fmt: skip


def test_what_does_not_arrive_whole(tmp_path):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        info = tarfile.TarInfo("x.whl")
        info.size = 5000
        tar.addfile(info, io.BytesIO(bytes(5000)))
    for stream in (PLAN + file.getvalue()[:1000], PLAN[:20], b""):
        done = install_from(stream, tmp_path)
        assert json.loads(done.stdout)["message"] == "what was sent did not arrive whole" and not done.stderr


def test_an_installer_that_nobody_hears_ends_quietly(tmp_path):
    file = io.BytesIO()
    tarfile.open(fileobj=file, mode="w").close()
    reader, writer = os.pipe()
    os.close(reader)
    done = install_from(PLAN + file.getvalue(), tmp_path, writer)
    os.close(writer)
    assert done.stderr == b""


def test_no_limit_outlives_a_tool(monkeypatch):
    def break_pipe(**_) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(installer, "say", break_pipe)
    with pytest.raises(BrokenPipeError):
        installer.run(["echo", "x"], "it failed", "")
    limits = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert all(thread.daemon and thread.finished.is_set() for thread in limits)


def test_a_tool_that_takes_too_long_is_said_to(monkeypatch):
    monkeypatch.setattr(installer, "PIP_SECONDS", 0.2)
    with pytest.raises(installer.InstallError, match="pip failed: it took longer than 0 minutes"):
        installer.run(["sleep", "60"], "pip failed", "")


STAYS = """
import sys, time
for line in ("5", '"ok"', "Welcome", '{"ok": true}'):
    print(line, flush=True)
time.sleep(60)
"""


def test_an_answer_counts_even_if_the_client_stays(homes, monkeypatch):
    """And what a login shell prints is passed over, even if it is JSON."""
    client = homes / "client.py"
    client.write_text(STAYS)
    monkeypatch.setenv("DRAGOMAN_SSH", f"{sys.base_prefix}/bin/python3 {client}")
    monkeypatch.setattr(setup, "END_SECONDS", 0.2)
    setup._install(Host("a", "a"), [], Order(None, ()), lambda *_: None, lambda *_: None)


def test_pip_arguments_with_an_open_quote(monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "setup", "--hosts", "a", "--pip-args", "--index 'x") == 2
    assert capsys.readouterr().err.startswith('error: --pip-args "--index \'x" cannot be read')


def test_no_wheels_in_the_folder(tmp_path):
    with pytest.raises(DragomanError, match="holds no wheels") as raised:
        set_up("a", tmp_path)
    assert f"torch=={torch_version()}" in raised.value.hint and "psutil" in raised.value.hint


def test_the_installer_needs_nothing_but_python():
    """It runs where there is no Dragoman, before anything is installed."""
    text = Path(installer.__file__).read_text()
    code = f"import sys; sys.argv = ['x']; exec({text!r}, {{'__name__': 'x'}}); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dragoman" not in done.stdout
    assert len(installer_command(Host("a", "a"))) < 100_000, "a command line has a limit of 128 KiB"
