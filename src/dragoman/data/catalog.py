"""The catalogue: corpora and evaluation sets by name, and how each comes to be files on this disk.

Knows where text lives; reading and cleaning it is for others.
"""

import difflib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dragoman import __version__
from dragoman.data.corpus import Corpus
from dragoman.data.download import Progress, Remote, download
from dragoman.errors import DragomanError

PHRASEBOOK = "phrasebook"
_MTDATA, _SACREBLEU = "mtdata:", "sacrebleu:"


@dataclass(frozen=True)
class Named:
    """A corpus or evaluation set of the catalogue."""

    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class Archive:
    """A .tgz on the web with one file per language."""

    remote: Remote
    members: dict[str, str]


# Hashes as TensorFlow Datasets publishes them (url_checksums/wmt16_translate.txt).
ARCHIVES = {
    "europarl-v7-de-en": Archive(
        Remote(
            "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
            657_632_379,
            "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        ),
        {"en": "training/europarl-v7.de-en.en", "de": "training/europarl-v7.de-en.de"},
    ),
    "commoncrawl-de-en": Archive(
        Remote(
            "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
            918_311_367,
            "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        ),
        {"en": "commoncrawl.de-en.en", "de": "commoncrawl.de-en.de"},
    ),
    "news-commentary-v11-de-en": Archive(
        Remote(
            "https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
            75_178_032,
            "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
        ),
        {
            "en": "training-parallel-nc-v11/news-commentary-v11.de-en.en",
            "de": "training-parallel-nc-v11/news-commentary-v11.de-en.de",
        },
    ),
}
GROUPS = {"wmt14-en-de": tuple(ARCHIVES), "wmt16-en-de": tuple(ARCHIVES)}
# Our name -> sacrebleu's; `sacrebleu:NAME` reaches the others.
EVAL_SETS = {f"newstest20{year:02d}": f"wmt{year:02d}" for year in range(8, 21)}


def check_training_name(name: str, languages: str) -> None:
    """Refuse a name that no fetching could make good."""
    if name.startswith(_MTDATA):
        _require_mtdata()
    elif name in ARCHIVES or name in GROUPS:
        _check_languages(name, languages, {"en-de", "de-en"})
    elif name == PHRASEBOOK:
        _check_languages(name, languages, {"en-de"})
    else:
        raise _unknown("corpus", name, [PHRASEBOOK, *GROUPS, *ARCHIVES, "mtdata:ID"])


def check_eval_name(name: str, languages: str) -> None:
    if name == PHRASEBOOK:
        _check_languages(name, languages, {"en-de"})
    elif name not in EVAL_SETS and not name.startswith(_SACREBLEU):
        raise _unknown("evaluation set", name, [PHRASEBOOK, *EVAL_SETS, "sacrebleu:NAME"])


def identity(name: str) -> str:
    """What decides the text that the name stands for, so that nothing need be fetched to compare two requests."""
    if name in GROUPS:
        return " ".join(identity(member) for member in GROUPS[name])
    if name in ARCHIVES:
        return f"{name} {ARCHIVES[name].remote.sha256}"
    return f"{name} {__version__}" if name == PHRASEBOOK else name


def fetch_training(named: Named, languages: str, folder: Path, progress: Progress) -> list[Corpus]:
    """The files of a training corpus. Downloads are kept in the cache, what is generated goes to the folder."""
    if named.name in GROUPS:
        members = [Named(member, named.weight) for member in GROUPS[named.name]]
        return [corpus for member in members for corpus in fetch_training(member, languages, folder, progress)]
    if named.name == PHRASEBOOK:
        return [_phrasebook("train", named.weight, folder)]
    if named.name.startswith(_MTDATA):
        return [_from_mtdata(named, languages, progress)]
    paths = fetch_archive(named.name, ARCHIVES[named.name], languages, progress)
    return [Corpus(named.name, paths[0], paths[1], named.weight)]


def fetch_eval(named: Named, split: str, languages: str, folder: Path) -> Corpus:
    """The files of a dev or test set."""
    if named.name == PHRASEBOOK:
        return _phrasebook(split, 1.0, folder)
    return _from_sacrebleu(named.name, languages)


def cache_folder() -> Path:
    """Downloads outlive the data folders made from them."""
    given = os.environ.get("DRAGOMAN_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dragoman"


def fetch_archive(name: str, archive: Archive, languages: str, progress: Progress) -> list[Path]:
    """Source and target file of an archive, fetched and unpacked once."""
    folder = cache_folder() / name
    paths = [folder / f"{name}.{language}" for language in languages.split("-")]
    if all(path.is_file() for path in paths):
        return paths
    packed = cache_folder() / "downloads" / archive.remote.name
    download(archive.remote, packed, progress)
    folder.mkdir(parents=True, exist_ok=True)
    members = {archive.members[language]: path for language, path in zip(languages.split("-"), paths, strict=True)}
    progress(f"unpacking {packed.name}", 0, 0)
    try:
        _unpack(packed, members)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        packed.unlink()
        raise DragomanError(
            f"{packed} is damaged or cut off: {error}", "run the same command again: it is fetched anew"
        ) from None
    return paths


def _unpack(packed: Path, members: dict[str, Path]) -> None:
    """Read the archive to its end, which checks it, and write the members that are wanted."""
    missing = set(members)
    with tarfile.open(packed, "r|gz") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.name.removeprefix("./") in members else None
            if file is None:
                continue
            path = members[entry.name.removeprefix("./")]
            part = path.with_name(path.name + ".part")
            with part.open("wb") as output:
                shutil.copyfileobj(file, output, 1 << 20)
            part.replace(path)
            missing.discard(entry.name.removeprefix("./"))
    if missing:
        raise DragomanError(f"{packed} has no member {min(missing)}", "the archive is not the expected one")


def _phrasebook(split: str, weight: float, folder: Path) -> Corpus:
    from dragoman.data.phrasebook.generate import phrasebook

    paths = [folder / f"phrasebook.{split}.{language}" for language in ("en", "de")]
    if not all(path.is_file() for path in paths):
        book = phrasebook()
        for name, sentences in (("train", book.train), ("dev", book.dev), ("test", book.test)):
            sides = ([entry.source for entry in sentences], [entry.target for entry in sentences])
            for language, lines in zip(("en", "de"), sides, strict=True):
                text = "".join(f"{line}\n" for line in lines)
                (folder / f"phrasebook.{name}.{language}").write_bytes(text.encode())
    return Corpus(PHRASEBOOK, paths[0], paths[1], weight)


def _from_sacrebleu(name: str, languages: str) -> Corpus:
    import sacrebleu.dataset

    datasets = cast("dict[str, Any]", vars(sacrebleu.dataset)["DATASETS"])  # it has no types
    theirs = EVAL_SETS.get(name, name.removeprefix(_SACREBLEU))
    if theirs not in datasets or languages not in datasets[theirs].langpairs:
        raise DragomanError(
            f"sacrebleu has no evaluation set {theirs!r} for {languages}", "`sacrebleu --list` shows what it has"
        )
    try:
        files: list[str] = datasets[theirs].get_files(languages)
    except (Exception, SystemExit) as error:  # it raises whatever comes, and exits on a wrong checksum
        raise DragomanError(
            f"sacrebleu could not fetch {theirs} for {languages}: {error}",
            "check the network, or give --dev-source and --dev-target (--test-source and --test-target)",
        ) from None
    return Corpus(name.replace(":", "-").replace("/", "-"), Path(files[0]), Path(files[1]))


def _from_mtdata(named: Named, languages: str, progress: Progress) -> Corpus:
    """Through its command line, which is what it keeps stable."""
    _require_mtdata()
    dataset = named.name.removeprefix(_MTDATA)
    folder = cache_folder() / "mtdata"
    progress(f"fetching {named.name}", 0, 0)
    command = [sys.executable, "-m", "mtdata", "get", "-l", languages, "-tr", dataset, "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    paths = [_mtdata_file(folder / "train-parts", dataset, language) for language in languages.split("-")]
    if done.returncode or paths[0] is None or paths[1] is None:
        last = (done.stderr.strip().splitlines() or ["no text came"])[-1]
        raise DragomanError(
            f"mtdata could not fetch {dataset}: {last}",
            "check the network and the id: `mtdata list -id` shows all",
        )
    return Corpus(dataset, paths[0], paths[1], named.weight)


def _mtdata_file(folder: Path, dataset: str, language: str) -> Path | None:
    """It names files by three-letter codes, `ID.eng`."""
    from mtdata.iso.bcp47 import bcp47  # type: ignore[import-not-found]

    wanted = str(bcp47(language).lang)  # type: ignore[reportUnknown]
    candidates = [path for path in folder.glob(f"{dataset}.*") if path.suffix[1:].split("_")[0] == wanted]
    return candidates[0] if candidates else None


def _require_mtdata() -> None:
    if importlib.util.find_spec("mtdata") is None:
        raise DragomanError(
            "corpora named mtdata:ID need the package mtdata", "pip install 'dragoman[catalog]', or give your own files"
        )


def _check_languages(name: str, languages: str, known: set[str]) -> None:
    if languages not in known:
        raise DragomanError(
            f"{name} is {' and '.join(sorted(known))}, not {languages}", "change --languages or the corpus"
        )


def _unknown(what: str, name: str, known: list[str]) -> DragomanError:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f", did you mean {near[0]!r}?" if near else ""
    return DragomanError(f"there is no {what} {name!r} in the catalogue{guess}", f"name one of {', '.join(known)}")
