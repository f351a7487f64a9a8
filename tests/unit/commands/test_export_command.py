"""`dragoman export` as it is typed, and `evaluate` on what it made."""

import json

import pytest

from command_line import run_dragoman
from dragoman.data.shards import open_shards
from small_runs import dragoman_here


@pytest.fixture(scope="module")
def module_patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def export(trained_run, tmp_path_factory, module_patch):
    out = tmp_path_factory.mktemp("exports") / "int8"
    arguments = ["export", trained_run, "--to", "ctranslate2", "--out", out, "--sentences", "15"]
    assert dragoman_here(module_patch, *arguments) == 0
    return out


def test_the_summary_and_json(trained_run, tmp_path, monkeypatch, capsys):
    arguments = ["export", trained_run, "--to", "ctranslate2", "--quantization", "float32", "--sentences", "12"]
    assert dragoman_here(monkeypatch, *arguments, "--out", tmp_path / "a") == 0
    shown = capsys.readouterr()
    assert "ctranslate2, float32" in shown.out
    assert "12 sentences of" in shown.out
    assert "alike in greedy search" in shown.out
    assert shown.err == ""
    assert dragoman_here(monkeypatch, *arguments, "--out", tmp_path / "b", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(tmp_path / "b")
    assert found["gate"] == json.loads((tmp_path / "b" / "model.json").read_text())["gate"]


def test_hugging_face_is_quiet_where_there_is_no_terminal(trained_run, tmp_path):
    """In a process of its own: what other tests left running shall not be taken for it."""
    done = run_dragoman("export", trained_run, "--to", "huggingface", "--out", tmp_path / "a", "--sentences", "5")
    assert "become the same pieces" in done.stdout
    assert done.stderr == ""


def test_an_existing_folder_is_exit_code_2(trained_run, export, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "export", trained_run, "--to", "ctranslate2", "--out", export) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_refused_export_is_exit_code_1(trained_run, tmp_path, monkeypatch, capsys):
    from dragoman.translate.export import gate

    monkeypatch.setattr(gate, "QUANTIZED_BLEU_LIMIT", -1.0)
    arguments = ["export", trained_run, "--to", "ctranslate2", "--out", tmp_path / "a", "--sentences", "5"]
    assert dragoman_here(monkeypatch, *arguments) == 1
    shown = capsys.readouterr()
    assert "NOT BLEU" in shown.err
    assert "nothing was written" in shown.err
    assert list(tmp_path.iterdir()) == []


def test_evaluate_takes_exports_on_both_sides(trained_run, export, phrasebook_data, monkeypatch, capsys):
    asked = ["--data", phrasebook_data, "--set-name", open_shards(phrasebook_data).dev_sets[0].name, "--json"]
    assert dragoman_here(monkeypatch, "evaluate", export, "--against", trained_run, "--beam", "1", *asked) == 0
    (found,) = json.loads(capsys.readouterr().out)["sets"]
    assert found["comparison"]["bleu"]["a"] == found["scores"]["bleu"]["value"]
    assert dragoman_here(monkeypatch, "evaluate", trained_run, "--against", export, "--beam", "1", *asked) == 0
    (other,) = json.loads(capsys.readouterr().out)["sets"]
    assert other["comparison"]["bleu"]["delta"] == -found["comparison"]["bleu"]["delta"]


def test_evaluate_has_the_language_from_the_export(export, tmp_path, monkeypatch, capsys):
    for name, line in (("t.en", "The dog sleeps."), ("t.de", "Der Hund schläft.")):
        (tmp_path / name).write_text(line + "\n")
    path = export / "model.json"
    text = path.read_text()
    files = ["--source", tmp_path / "t.en", "--target", tmp_path / "t.de", "--json"]
    signatures = []
    try:
        for language in ("de", "zh"):
            path.write_text(text.replace('"target_language": "de"', f'"target_language": "{language}"'))
            assert dragoman_here(monkeypatch, "evaluate", export, *files) == 0
            signatures.append(json.loads(capsys.readouterr().out)["sets"][0]["scores"]["bleu"]["signature"])
    finally:
        path.write_text(text)
    assert ["tok:13a" in signatures[0], "tok:zh" in signatures[1]] == [True, True]


def test_evaluate_asks_for_text_where_an_export_has_none(export, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "evaluate", export) == 2
    shown = capsys.readouterr().err
    assert "does not say which data" in shown
    assert "--source FILE" in shown


def test_translate_takes_an_export(export, tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("The dog sleeps.\n\n")
    assert dragoman_here(monkeypatch, "translate", export, tmp_path / "text") == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    assert (first != "", second) == (True, "")
