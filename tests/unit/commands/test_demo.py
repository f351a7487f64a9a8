"""`dragoman demo --link`: its training step on emulated hosts, with stand-ins for the rest."""

import contextlib
import sys
from pathlib import Path

import pytest
import typer

from dragoman.commands import demo, evaluate, export, prepare, report, train
from dragoman.launch.lab import foreground, lab
from dragoman.launch.lab.requirements import LabUnavailable


@pytest.fixture
def steps(monkeypatch, tmp_path) -> list[str]:
    """What was done, in order; the lab is one that was never made."""
    done: list[str] = []

    class NoLab:
        def describe(self) -> list[str]:
            return []

    @contextlib.contextmanager
    def open_lab(num_hosts, link, working_folder: Path | None = None):
        done.append(f"lab of {num_hosts} in {working_folder}")
        yield NoLab()

    def run_in_lab(_, command) -> int:
        done.append(" ".join(command[1:]))
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "open_lab", open_lab)
    monkeypatch.setattr(foreground, "run_in_lab", run_in_lab)
    monkeypatch.setattr(demo, "_translate_samples", lambda run: done.append("translate"))
    modules = {"prepare": prepare, "train": train, "evaluate": evaluate, "report": report, "export": export}
    for name, module in modules.items():
        monkeypatch.setattr(module, name, lambda *_, name=name, **__: done.append(name))
    return done


def test_without_a_link_it_trains_here(steps, capsys):
    demo.demo()
    assert steps == ["prepare", "train", "evaluate", "translate", "report", "export"]
    assert "serve demo/model --browser" in capsys.readouterr().out


def test_the_model_of_an_earlier_demo_is_replaced_and_nothing_else(steps, tmp_path):
    (tmp_path / "demo/model").mkdir(parents=True)
    (tmp_path / "demo/model/model.json").touch()
    demo.demo()
    assert not (tmp_path / "demo/model").exists()
    (tmp_path / "demo/model").mkdir()
    (tmp_path / "demo/model/notes.txt").touch()
    demo.demo()
    assert (tmp_path / "demo/model/notes.txt").exists()


def test_with_a_link_it_trains_on_two_emulated_hosts(steps, tmp_path):
    demo.demo(out=Path("out"), workers=4, link="20mbit")
    trained = f"-P -m dragoman.cli train phrasebook --hosts a,b --yes --workers 2 --data {tmp_path}/out/data --run"
    assert steps[:3] == ["lab of 1 in None", "prepare", "lab of 2 in out"]
    assert steps[3].startswith(f"{trained} {tmp_path}/out/exact-run --set sync.method=dense"), "the usual way first"
    assert steps[4:6] == ["report", "lab of 2 in out"]
    assert steps[6:] == [f"{trained} {tmp_path}/out/run", "evaluate", "translate", "report", "export"]


def test_a_training_that_failed_ends_the_demo_with_its_code(steps, monkeypatch):
    monkeypatch.setattr(foreground, "run_in_lab", lambda *_: 130)
    with pytest.raises(typer.Exit) as ended:
        demo.demo(link="20mbit")
    assert ended.value.exit_code == 130
    assert "evaluate" not in steps


def test_a_machine_without_emulated_hosts_says_so_first(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(LabUnavailable, match="need Linux"):
        demo.demo(link="20mbit")
    assert list(tmp_path.iterdir()) == []
