"""Dragoman on hosts that have none: the wheel, the installer, and what it says when it fails."""

import fcntl
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from borrowed_wheels import write_borrowed_wheels
from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.package import code_digest, package_files, torch_version
from dragoman.launch.install import installer
from dragoman.launch.install.setup import Order, installer_command, set_up_hosts
from dragoman.launch.install.wheel import build_wheel
from small_runs import dragoman_here
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def homes(tmp_path, monkeypatch) -> Path:
    """Hosts a and b without any Dragoman: our own Python is not at the same path there."""
    stand_in_hosts(tmp_path, monkeypatch, "a", "b")
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
