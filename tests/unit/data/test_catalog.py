import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_download import answer, serve

from dragoman.data import catalog
from dragoman.data.catalog import Archive, Named
from dragoman.data.download import Remote
from dragoman.errors import DragomanError
from dragoman.recipe import load_recipe


def quiet(stage: str, done: float, total: float) -> None:
    pass


def make_archive(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


MEMBERS = {"./in/text.en": b"one\ntwo\n" * 999, "in/text.de": b"eins\nzwei\n" * 999, "in/other": b"x" * 99_999}
PACKED = make_archive(MEMBERS)
NAMES = {"en": "in/text.en", "de": "in/text.de"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_archive_is_fetched_and_unpacked_once():
    with serve(answer(PACKED)) as server:
        archive = Archive(Remote(server.url, len(PACKED), hashlib.sha256(PACKED).hexdigest()), NAMES)
        for _ in range(2):
            source, target = catalog.fetch_archive("mine", archive, "de-en", quiet)
            assert source.read_bytes() == MEMBERS["in/text.de"]
            assert target.read_bytes() == MEMBERS["./in/text.en"]
    assert len(server.ranges) == 1


@pytest.mark.parametrize(
    "body",
    [PACKED[:-200], PACKED[: len(PACKED) // 2], b"<html>moved</html>" * 99],
    ids=["end missing", "half missing", "another page"],  # the bytes hold the time of day and must not name a test
)
def test_a_truncated_archive_without_known_hash(cache: Path, body: bytes):
    with serve(answer(body), answer(PACKED)) as server:
        archive = Archive(Remote(server.url), NAMES)
        with pytest.raises(DragomanError, match="is damaged or cut off") as caught:
            catalog.fetch_archive("mine", archive, "en-de", quiet)
        assert "fetched anew" in caught.value.hint
        assert catalog.fetch_archive("mine", archive, "en-de", quiet)[0].read_bytes() == MEMBERS["./in/text.en"]


def test_an_archive_without_the_member(cache: Path):
    body = make_archive({"in/text.en": b"one\n"})
    with serve(answer(body)) as server, pytest.raises(DragomanError, match=r"has no member in/text\.de"):
        catalog.fetch_archive("mine", Archive(Remote(server.url), NAMES), "en-de", quiet)


def test_a_group_is_its_members(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with serve(answer(PACKED)) as server:
        archives = {name: Archive(Remote(server.url), NAMES) for name in catalog.ARCHIVES}
        monkeypatch.setattr(catalog, "ARCHIVES", archives)
        found = catalog.fetch_training(Named("wmt14-en-de", 2.0), "en-de", tmp_path, quiet)
    assert [corpus.name for corpus in found] == list(archives)
    assert {corpus.weight for corpus in found} == {2.0}


def test_the_classic_recipe_names_what_the_catalogue_has():
    data = load_recipe("wmt14-en-de-classic").data
    assert tuple(data.corpora) == catalog.GROUPS["wmt14-en-de"]
    for name in data.corpora:
        catalog.check_training_name(name, "en-de")
    for name in (*data.dev, *data.test):
        catalog.check_eval_name(name, "en-de")


@pytest.mark.parametrize("name", ["europarl-v7-de-en", "wmt14-en-de"])
def test_languages_must_fit(name: str):
    catalog.check_training_name(name, "de-en")
    with pytest.raises(DragomanError, match=f"{name} is de-en and en-de, not en-fr"):
        catalog.check_training_name(name, "en-fr")


def test_unknown_names_get_a_hint():
    with pytest.raises(DragomanError, match=r"no corpus 'europarl-v7-en-de'.*did you mean 'europarl-v7-de-en'"):
        catalog.check_training_name("europarl-v7-en-de", "en-de")
    with pytest.raises(DragomanError, match=r"no evaluation set 'newstest13'.*did you mean 'newstest2013'"):
        catalog.check_eval_name("newstest13", "en-de")


def test_sacrebleu_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from sacrebleu import dataset

    asked: list[str] = []

    def get_files(languages: str) -> list[str]:
        asked.append(languages)
        return [str(tmp_path / "src"), str(tmp_path / "ref"), "docid"]

    fake = {"wmt13": SimpleNamespace(langpairs={"en-de": []}, get_files=get_files)}
    monkeypatch.setattr(dataset, "DATASETS", fake)
    corpus = catalog.fetch_eval(Named("newstest2013"), "dev", "en-de", tmp_path)
    assert (corpus.name, corpus.source, corpus.target) == ("newstest2013", tmp_path / "src", tmp_path / "ref")
    assert catalog.fetch_eval(Named("sacrebleu:wmt13"), "dev", "en-de", tmp_path).name == "sacrebleu-wmt13"
    assert asked == ["en-de", "en-de"]
    with pytest.raises(DragomanError, match="no evaluation set 'wmt13' for en-xx"):
        catalog.fetch_eval(Named("newstest2013"), "dev", "en-xx", tmp_path)


@pytest.mark.parametrize("error", [OSError("Name or service not known"), SystemExit(1)])
def test_sacrebleu_without_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException):
    from sacrebleu import dataset

    def get_files(languages: str) -> list[str]:
        raise error

    monkeypatch.setattr(dataset, "DATASETS", {"wmt13": SimpleNamespace(langpairs={"en-de": []}, get_files=get_files)})
    with pytest.raises(DragomanError, match="sacrebleu could not fetch wmt13 for en-de"):
        catalog.fetch_eval(Named("newstest2013"), "dev", "en-de", tmp_path)


def test_our_names_are_sacrebleus():
    from sacrebleu.dataset import DATASETS

    assert set(catalog.EVAL_SETS.values()) <= set(DATASETS)


def test_mtdata_is_optional(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DragomanError, match="need the package mtdata") as caught:
        catalog.check_training_name("mtdata:Statmt-europarl-7-deu-eng", "en-de")
    assert "dragoman[catalog]" in caught.value.hint


@pytest.mark.parametrize("works", [True, False])
def test_mtdata_by_its_command_line(monkeypatch: pytest.MonkeyPatch, cache: Path, works: bool):
    codes = {"en": "eng", "de": "deu"}
    bcp47 = SimpleNamespace(bcp47=lambda language: SimpleNamespace(lang=codes[language]))
    monkeypatch.setitem(sys.modules, "mtdata.iso.bcp47", bcp47)
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda name: object())
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if not works:
            return subprocess.CompletedProcess(command, 1, "", "Traceback\nConnectionError: no route")
        folder = Path(command[-1]) / "train-parts"
        folder.mkdir(parents=True)
        for code in codes.values():
            (folder / f"Group-set-1-deu-eng.{code}").write_text(code)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(catalog.subprocess, "run", run)
    named = Named("mtdata:Group-set-1-deu-eng")
    if not works:
        with pytest.raises(
            DragomanError, match="mtdata could not fetch Group-set-1-deu-eng: ConnectionError: no route"
        ):
            catalog.fetch_training(named, "en-de", cache, quiet)
        return
    (corpus,) = catalog.fetch_training(named, "en-de", cache, quiet)
    assert (corpus.source.read_text(), corpus.target.read_text()) == ("eng", "deu")  # type: ignore[union-attr]
    assert commands[0][1:7] == ["-m", "mtdata", "get", "-l", "en-de", "-tr"]
