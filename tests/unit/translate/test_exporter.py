"""Exports: whole or not at all, refused where they differ, complete by themselves."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.data.shards import open_shards
from dragoman.errors import CheckFailed, DragomanError
from dragoman.model.weights import average_files, load_tensors
from dragoman.run.folder import RunFolder
from dragoman.translate.engine import open_engine
from dragoman.translate.export import ctranslate2, exporter, huggingface
from dragoman.translate.export.sample import SampleChoice
from dragoman.translate.export_folder import open_export
from exports import export_here, quiet

ALONE = "import sys, runpy; sys.modules['dragoman'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.fixture(scope="module")
def exports(trained_run, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exports")
    kinds = {"ctranslate2": None, "huggingface": None, "float32": "float32"}
    for name, quantization in kinds.items():
        to = "huggingface" if name == "huggingface" else "ctranslate2"
        export_here(trained_run, folder / name, to, quantization=quantization)
    return {name: folder / name for name in kinds}


@pytest.fixture
def own_run(trained_run, tmp_path) -> Path:
    return shutil.copytree(trained_run, tmp_path / "run", symlinks=True)


@pytest.fixture(autouse=True)
def nothing_half_made(tmp_path):
    yield
    assert list(tmp_path.rglob(".*partial*")) == []


@pytest.mark.parametrize("name", ["ctranslate2", "huggingface"])
def test_model_json_says_what_it_is(exports, name, trained_run, phrasebook_data):
    info = open_export(exports[name]).info
    assert (info.format, info.quantization) == (name, {"ctranslate2": "int8", "huggingface": "float32"}[name])
    manifest = json.loads((trained_run / "manifest.json").read_text())
    assert f"{info.source_language}-{info.target_language}" == manifest["data"]["languages"]
    assert (info.origin.run, info.origin.recipe) == (manifest["name"], manifest["recipe"]["name"])
    assert info.origin.step in RunFolder(trained_run).step_checkpoints()
    assert info.max_pieces == 60
    gate = info.gate
    assert (gate["passed"], gate["num_sentences"]) == (True, 20)
    assert gate["dev_set"] == open_shards(phrasebook_data).dev_sets[0].name
    unlisted = {path.name for path in exports[name].iterdir()} - set(info.files)
    assert unlisted == {"model.json", "README.md", "example.py"}
    assert {path.stat().st_mode & 0o777 for path in exports[name].iterdir()} == {0o644}
    assert len(gate["checks"]) == {"ctranslate2": 1, "huggingface": 4}[name]


@pytest.mark.parametrize("name", ["ctranslate2", "huggingface"])
def test_the_example_translates_without_dragoman_wherever_it_lies(exports, name, tmp_path):
    moved = shutil.copytree(exports[name], tmp_path / "else where" / "model")
    source = (moved / "example.py").read_text()
    assert len(source.splitlines()) <= 15
    assert "dragoman" not in source
    lines = ["The dog sleeps.", "", "The old baker sings."]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(moved / "example.py")],
        input="\n".join(lines) + "\n", capture_output=True, text=True, cwd=tmp_path, timeout=200,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    engine = open_engine(moved, "cpu")
    from dragoman.translate.translator import Translator

    expected = [best[0].text for best in Translator(engine.path, device="cpu").translate(lines)]
    found = [" ".join(line.split()) for line in done.stdout.split("\n")[:-1]]
    assert (found[0] != "", found[1]) == (True, "")
    assert found == expected


def test_the_card_says_what_is_known_and_what_is_not(exports, trained_run):
    text = (exports["ctranslate2"] / "README.md").read_text()
    front = text.split("---\n")[1].splitlines()
    assert front[:4] == ["language:", '- "en"', '- "de"', "pipeline_tag: translation"]
    manifest = json.loads((trained_run / "manifest.json").read_text())
    assert manifest["data"]["fingerprint"] in text
    assert "nrefs:1|case:mixed" in text
    assert "Cost: not recorded" in text
    assert "On the first 20 sentences" in text
    assert "up to 60 pieces" in text


def test_the_cost_is_told_where_a_price_is_known(own_run, tmp_path):
    path = own_run / "manifest.json"
    manifest = json.loads(path.read_text()) | {"price_per_hour": 36_000.0, "currency": "€"}
    path.write_text(json.dumps(manifest))
    export_here(own_run, tmp_path / "out")
    line = next(x for x in (tmp_path / "out" / "README.md").read_text().splitlines() if x.startswith("- Cost"))
    assert line.startswith("- Cost: €")
    assert line != "- Cost: €0.00."


@pytest.mark.parametrize(("to", "module"), [("ctranslate2", ctranslate2), ("huggingface", huggingface)])
def test_a_damaged_export_is_refused(trained_run, tmp_path, monkeypatch, to, module):
    """One matrix with the wrong sign, on the way out."""
    name = "_set_linear" if to == "ctranslate2" else "_layer_weights"
    healthy = getattr(module, name)
    if to == "ctranslate2":

        def damaged(spec, linear):
            healthy(spec, linear)
            spec.weight = -spec.weight
    else:

        def damaged(layer, prefix, own):
            for key, value in healthy(layer, prefix, own):
                yield key, -value if key.endswith("decoder.layers.0.fc2.weight") else value

    monkeypatch.setattr(module, name, damaged)
    with pytest.raises(CheckFailed, match="does not translate as the original") as refusal:
        export_here(trained_run, tmp_path / "out", to, quantization="float32")
    assert "NOT log-probabilities" in refusal.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_tokenizer_is_refused(trained_run, tmp_path, monkeypatch):
    from dragoman.translate.export import tokenizer

    healthy = tokenizer.merges
    monkeypatch.setattr(tokenizer, "merges", lambda pieces, rules: healthy(pieces, rules)[::-1])
    with pytest.raises(CheckFailed, match=r"NOT .* become the same pieces"):
        export_here(trained_run, tmp_path / "out", "huggingface")


def test_the_mean_of_the_last_checkpoints(trained_run, tmp_path):
    done = export_here(trained_run, tmp_path / "out", "huggingface", num_averaged=3)
    run = RunFolder(trained_run)
    steps = run.step_checkpoints()[-3:]
    mean = average_files([run.step_checkpoint(step) / "weights.safetensors" for step in steps])
    stored = load_tensors(tmp_path / "out" / "model.safetensors")
    shared = next(tensor for name, tensor in stored.items() if tensor.shape == mean["embedding.weight"].shape)
    assert torch.equal(shared, mean["embedding.weight"])
    assert (done.info.origin.num_averaged, done.info.origin.step) == (3, steps[-1])
    assert done.info.source_language == "en"


def test_an_average_of_more_than_there_are(trained_run, own_run, tmp_path):
    number = len(RunFolder(trained_run).step_checkpoints())
    with pytest.raises(DragomanError, match=f"has {number} checkpoints, not {number + 1}"):
        export_here(trained_run, tmp_path / "out", num_averaged=number + 1)
    lacking = RunFolder(own_run).step_checkpoint(RunFolder(own_run).step_checkpoints()[-2])
    (lacking / "weights.safetensors").unlink()
    with pytest.raises(DragomanError, match=f"have no weights: {lacking.name}"):
        export_here(own_run, tmp_path / "out", num_averaged=2)
    with pytest.raises(DragomanError, match="--average needs a run"):
        export_here(RunFolder(trained_run).checkpoints_path / "last", tmp_path / "out", num_averaged=2)


def test_weights_that_the_run_did_not_write(own_run, tmp_path):
    for step in RunFolder(own_run).step_checkpoints():
        path = RunFolder(own_run).step_checkpoint(step) / "weights.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.raises(DragomanError, match="other bytes than the run wrote"):
        export_here(own_run, tmp_path / "out")
    done = export_here(own_run, tmp_path / "out", is_forced=True)
    assert done.info.origin.has_changed_weights
    assert "not the bytes that the run wrote" in (tmp_path / "out" / "README.md").read_text()


def test_an_existing_folder_is_left_alone(trained_run, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(DragomanError, match="exists already"):
        export_here(trained_run, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("where", ["_compare", "publish", "_write_model"])
def test_an_interrupt_leaves_nothing(trained_run, tmp_path, monkeypatch, where):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_here(trained_run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("quantization", ["int8", "int8_float16"])
def test_hugging_face_knows_no_int8(trained_run, tmp_path, quantization):
    with pytest.raises(DragomanError, match=f"cannot be {quantization}") as error:
        export_here(trained_run, tmp_path / "out", "huggingface", quantization=quantization)
    assert error.value.hint == "it can be float32, float16"


@pytest.mark.parametrize(("to", "dtype"), [("huggingface", "float16"), ("ctranslate2", "int8_float16")])
def test_half_precision_says_how_it_was_compared(trained_run, tmp_path, to, dtype):
    done = export_here(trained_run, tmp_path / "out", to, quantization=dtype)
    assert any("this machine computes" in note for note in done.notes)
    if to == "huggingface":
        tensors = load_tensors(tmp_path / "out" / "model.safetensors").values()
        assert {tensor.dtype for tensor in tensors} == {torch.float16}


def test_sentences_to_compare_on_must_come_from_somewhere(trained_run, own_run, tmp_path):
    path = own_run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["data"]["path"] = str(tmp_path / "gone")
    path.write_text(json.dumps(manifest))
    with pytest.raises(DragomanError, match="is not here") as error:
        export_here(own_run, tmp_path / "out")
    assert "--source FILE --target FILE, or --data DIR" in error.value.hint
    alone = shutil.copytree(RunFolder(trained_run).checkpoints_path / "last", tmp_path / "alone")
    with pytest.raises(DragomanError, match="does not say which data"):
        export_here(alone, tmp_path / "out")
    for name, text in (("dev.en", "The dog sleeps.\n"), ("dev.de", "Der Hund schläft.\n")):
        (tmp_path / name).write_text(text)
    choice = SampleChoice(tmp_path / "dev.en", tmp_path / "dev.de")
    request = exporter.Request(alone, "ctranslate2", tmp_path / "out", "float32", sample=choice)
    done = exporter.export_model(request, quiet)
    assert (done.info.gate["num_sentences"], done.info.source_language) == (1, "")
    assert "not recorded" in (tmp_path / "out" / "README.md").read_text()


def test_an_export_is_not_exported_again(exports, tmp_path):
    with pytest.raises(DragomanError, match="is an export already"):
        export_here(exports["ctranslate2"], tmp_path / "out")
