"""`dragoman plan` as a user types it: tables, JSON, files, and one clear line for what is wrong."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from command_line import run_dragoman
from dragoman.commands import plan as command
from dragoman.commands.plan import plan
from dragoman.errors import DragomanError
from dragoman.run.folder import RunFolder
from dragoman.run.promise import HostProfile, LinkProfile, Prediction, Profile, read_promise, write_promise

MACHINES = ("--machines", "2x2:V100", "--link", "100mbit")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """The prediction is written where the command is typed."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def called():
    """Call the command in this process; what it printed."""
    app = typer.Typer()
    app.command()(plan)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)
        if isinstance(result.exception, DragomanError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_the_tables_say_bytes_split_timeline_cost_files_and_what_if(called):
    text = called(
        "wmt14-en-de-classic", *MACHINES, "--price", "14.3", "--price-per-gb", "0.09", "--set", "sync.method=dense"
    )
    for words in (
        "wmt14-en-de-classic on 2 hosts with 2 x V100, dense fp32: estimated",
        "60.9 M gradients x 4 bytes x 2(4-1)/4 = 365 MB",
        "waiting for the exchange",
        "s/step (0.03",
        "11.3 epochs",
        "machines $6,",
        "traffic $3,288",
        "weights.safetensors    243,540,520",
        "852.3 MB (812.8 MiB)",
        "as planned",
        "link x10",
        "diloco sign every 4",
        "8 hosts",
        "batch x2",
        "break-even: 2 hosts with dense fp32 beat one from",
        "no bf16: computed in fp16",
        "no data folder",
        "prediction.json written",
    ):
        assert words in text, words
    assert read_promise(Path("prediction.json"), Prediction).recipe == "wmt14-en-de-classic"


def test_the_number_of_microbatches_is_shown(called):
    text = called("base", "--machines", "1x4:A100")
    assert "microbatches" in text and "of 6,400 target tokens, 1 a rank" in text
    assert json.loads(called("base", "--machines", "1x4:A100", "--json"))["num_microbatches"] == 4


def test_json_and_the_file_are_the_prediction(called, tmp_path):
    out = tmp_path / "prediction.json"
    told = json.loads(called("base", *MACHINES, "--steps", "1000", "--currency", "EUR", "--json", "--out", out))
    written = read_promise(out, Prediction)
    assert written.num_steps == told["num_steps"] == 1_000
    assert written.line == told["line"]
    assert written.cost.currency == "EUR" and written.cost.total is None


@pytest.mark.parametrize("where", ["file", "run"])
def test_a_profile_is_a_file_or_a_run_folder(called, tmp_path, where):
    profile = Profile(0.0, (HostProfile("a", gpus=("Tesla T4",)), HostProfile("b")), LinkProfile(12e6, 0.001))
    path = RunFolder(tmp_path).profile_path
    write_promise(path, profile)
    text = called("tiny", "--profile", path if where == "file" else tmp_path)
    assert "a, b: 2 ranks on Tesla T4" in text
    assert "the profile has no compute time" in text.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ((), "on which machines"),
        (("--link", "1gbit"), "--link without --machines"),
        (("--machines", "2x2:V1000", "--link", "1gbit"), "did you mean V100"),
        (("--machines", "2x2:V100"), "2 hosts are joined by a link"),
        ((*MACHINES, "--price", "-3"), "--price -3 is no price"),
        ((*MACHINES, "--price-per-gb", "nan"), "--price-per-gb nan is no price"),
        ((*MACHINES, "--steps", "0"), "--steps 0"),
        (("--machines", "2x2:V100", "--link", "quick"), "'quick' is no link speed"),
        (("--profile", "nowhere.json"), "cannot read nowhere.json"),
        (("--profile", "p.json", "--machines", "1x1:T4"), "both say"),
        (("--profile", "p.json", "--link", "1gbit"), "--link has no effect"),
        ((*MACHINES, "--data", "nowhere"), "not a prepared data folder"),
        ((*MACHINES, "--out", "nowhere/p.json"), "cannot write nowhere/p.json"),
        ((*MACHINES, "--set", "sync.methud=dense"), "did you mean"),
    ],
)
def test_one_clear_line_for_what_is_wrong(called, tmp_path, monkeypatch, arguments, wrong):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DragomanError, match=wrong.replace("(", r"\(")) as error:
        called("base", *arguments)
    assert error.value.exit_code == 2 and error.value.hint


def test_a_run_folder_without_a_profile_says_so(tmp_path):
    with pytest.raises(DragomanError, match=r"has no profile\.json"):
        command._profile(tmp_path)


def test_the_command_itself():
    done = run_dragoman("plan", "base", "--machines", "2x2:V1000", "--link", "1gbit", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the table has no GPU 'V1000'") and "Traceback" not in done.stderr
    assert "break-even" in run_dragoman("plan", "base", "--machines", "1x1:A100").stdout
