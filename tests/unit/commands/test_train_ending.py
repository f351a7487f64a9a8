"""What ends a run of `dragoman train`, who hears of it, and what comes after: real runs of seconds."""

import json
import shutil
from pathlib import Path

import pytest

from command_line import changes, run_dragoman
from dragoman.commands.train_local import Wishes, make_order
from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.run.notices import VARIABLE
from small_runs import dragoman_here, records
from web_hook import web_hook

QUICK = ("evaluate.decode=false", "evaluate.train_pairs=0", "checkpoint.every_steps=1000")
ENDLESS = (*QUICK, "train.max_steps=1000000", "evaluate.every_steps=1000000")
SECRETS = ("SECRET", "HIDDEN")


def make(changes_: list[str] | None = None, **wishes):
    return make_order(
        "phrasebook", changes_ or [], Path("d"), Path("r"), None, None, "dragoman train", Wishes(**wishes)
    )


@pytest.mark.parametrize(
    ("settings", "hours", "minutes"),
    [([], 2, 120), (["train.max_minutes=30"], 2, 30), (["train.max_minutes=300"], 2, 120), ([], 0.001, 0.06)],
)
def test_the_smaller_of_hours_and_minutes_holds(settings, hours, minutes):
    order = make(settings, max_hours=hours)
    assert order.recipe.train.max_minutes == pytest.approx(minutes)
    # Hosts that are started by hand are given these words.
    assert make(list(order.recipe_words[2::2])).recipe.train.max_minutes == order.recipe.train.max_minutes


@pytest.mark.parametrize("wish", ["max_hours", "max_cost"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_limit_is_refused(wish, value):
    with pytest.raises(DragomanError, match="is no limit"):
        make(**{wish: value})


def hosts(*prices: float | None) -> list[Host]:
    return [Host(f"h{number}", f"h{number}", price_per_hour=price) for number, price in enumerate(prices)]


@pytest.mark.parametrize(
    ("typed", "known", "price"), [(None, (1, 2.5), 3.5), (4, (1, 2.5), 4), (4, (), 4), (4, (None,), 4)]
)
def test_the_price_is_that_of_all_machines(typed, known, price):
    assert make(max_cost=7, price_per_hour=typed).priced(hosts(*known)).wishes.price_per_hour == price


@pytest.mark.parametrize(("typed", "known"), [(None, ()), (None, (1, None)), (0, ()), (None, (0, 0))])
def test_money_without_a_price_is_refused(typed, known):
    with pytest.raises(DragomanError, match="--max-cost needs a price") as caught:
        make(max_cost=7, price_per_hour=typed).priced(hosts(*known))
    assert caught.value.exit_code == 2
    make(price_per_hour=typed).priced(hosts(*known))


def test_hosts_without_prices_are_refused_before_anybody_is_called(monkeypatch, capsys):
    arguments = ("train", "phrasebook", "--data", "d", "--run", "r", "--hosts", "no-such-host.invalid")
    assert dragoman_here(monkeypatch, *arguments, "--max-cost", "5") == 2
    assert capsys.readouterr().err.startswith("error: --max-cost needs a price")


@pytest.mark.parametrize("is_variable", [False, True])
def test_an_address_that_is_none_is_refused_and_not_shown(monkeypatch, capsys, tmp_path, is_variable):
    arguments = ["train", "phrasebook", "--data", tmp_path, "--run", tmp_path / "run"]
    if is_variable:
        monkeypatch.setenv(VARIABLE, "ftp://host/SECRET")
    else:
        arguments += ["--notify", "ftp://host/SECRET"]
    assert dragoman_here(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --notify takes an http or https address")
    assert "SECRET" not in said


@pytest.mark.parametrize(
    ("option", "place", "words"),
    [
        (("--when-done", "x"), ("--hosts", "a,b", "--node-rank", "0"), "--when-done means nothing with --node-rank"),
        (("--detach",), (), "--detach means nothing without --hosts"),
    ],
)
def test_an_option_without_effect_is_refused(monkeypatch, capsys, option, place, words):
    assert dragoman_here(monkeypatch, "train", "tiny", "--data", "d", "--run", "r", *option, *place) == 2
    assert capsys.readouterr().err.startswith(f"error: {words}")


def train(data: Path, run: Path, *options: str | Path, settings: tuple[str, ...] = ENDLESS, check: bool = True):
    words = ("train", "phrasebook", "--data", data, "--run", run, *options, *changes(*settings))
    return run_dragoman(*words, check=check, cwd=run.parent)


def everything_written(*folders: Path) -> str:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return "".join(path.read_bytes().decode(errors="replace") for path in files)


def test_money_ends_a_run_which_is_copied_told_and_followed_by_a_command(phrasebook_data, tmp_path):
    """A second of training costs 1: two seconds of it, then the mirror, then the command."""
    run = tmp_path / "run"
    money = ("--price", "3600", "--max-cost", "2", "--max-hours", "1")
    command = 'test -e copy/checkpoints/last && echo "$DRAGOMAN_RUN $DRAGOMAN_REASON" >> told; exit 3'
    with web_hook() as hook:
        after = ("--mirror", tmp_path / "copy", "--when-done", command, "--notify", hook.address)
        done = train(phrasebook_data, run, "--workers", "2", *money, *after)
    end = records(run, "events")[-1]
    assert (end["kind"], end["detail"]) == ("finished", {"reason": "max_cost"})
    assert "(max_cost), trained for 2." in done.stderr
    assert [record["step"] for record in records(run, "evals")] == [end["step"]]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["price_per_hour"] == 3600

    assert (tmp_path / "told").read_text() == f"{run} max_cost\n"
    assert done.stderr.endswith("warning: the command of --when-done ended with exit code 3\n")

    assert [kind for kind in hook.events if kind != "finding"] == ["started", "done"]
    last = hook.messages[-1]
    assert (last["run"], last["step"]) == ("run", end["step"])
    assert last["text"].startswith(f"run: finished at step {end['step']:,} (max_cost), trained for 2.")
    assert "--notify http://127.0.0.1/... " in manifest["attempts"][0]["command"] + " "
    run_dragoman("report", run)
    kept = everything_written(run, tmp_path / "copy") + done.stdout + done.stderr
    assert not [secret for secret in SECRETS if secret in kept]

    again = train(phrasebook_data, run, *money)
    assert again.stderr.startswith("the limit is reached (max_cost): 2.")
    assert len(again.stderr.splitlines()) == 1
    assert len(json.loads((run / "manifest.json").read_text())["attempts"]) == 1


def test_hours_end_a_run_and_a_larger_number_goes_on(phrasebook_data, tmp_path):
    run = tmp_path / "run"
    train(phrasebook_data, run, "--max-hours", "0.0003")
    end = records(run, "events")[-1]
    assert (end["kind"], end["detail"]) == ("finished", {"reason": "max_minutes"})
    done = train(phrasebook_data, run, "--max-hours", "0.0002", "--when-done", "touch told")
    assert "the limit is reached (max_minutes)" in done.stderr
    assert (tmp_path / "told").exists()
    train(phrasebook_data, run, "--max-hours", "0.0006")
    assert records(run, "events")[-1]["step"] > end["step"]


def test_a_run_that_fails_says_so_and_runs_no_command(phrasebook_data, tmp_path):
    data = Path(shutil.copytree(phrasebook_data, tmp_path / "data"))
    settings = (*QUICK, "train.max_steps=5", "evaluate.every_steps=1000")
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with web_hook() as hook:
        hook.status = 500
        options = ("--when-done", "touch told", "--notify", hook.address, "--abort-if-waiting", "100%")
        (tmp_path / "run" / "checkpoints" / "step-00000005").write_text("in the way")
        done = train(data, tmp_path / "run", *options, settings=settings, check=False)
    assert done.returncode not in (0, 130, 143)
    assert not (tmp_path / "told").exists()
    assert (hook.events[0], hook.events[-1]) == ("started", "stopped")
    assert "it failed" in hook.messages[-1]["text"]
    assert done.stderr.count("took no message: HTTP status 500") == 1
    assert not [secret for secret in SECRETS if secret in done.stderr + everything_written(tmp_path / "run")]
