"""The sentences on which an export is compared with its original: given as files, or the dev set of a data folder."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.data.evalsets import read_text_pair
from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError
from dragoman.run.reader import read_manifest
from dragoman.translate.export.gate import Sample
from dragoman.translate.export.original import Original

GIVE_TEXT = "give sentences to compare on: --source FILE --target FILE, or --data DIR"


@dataclass(frozen=True)
class SampleChoice:
    """What was asked for; nothing means the dev set of the run."""

    source: Path | None = None
    target: Path | None = None
    data: Path | None = None
    num_sentences: int = 500


def find_sample(choice: SampleChoice, original: Original) -> Sample:
    if (choice.source is None) != (choice.target is None):
        raise DragomanError("--source and --target belong together", GIVE_TEXT)
    if choice.source is not None and choice.target is not None:
        if choice.data is not None:
            raise DragomanError("--data and --source exclude each other", "leave one of them out")
        name, lines = choice.source.name, read_text_pair(choice.source, choice.target)
    else:
        name, lines = _dev_set(choice.data or _data_folder(original))
    sources, references = (side[: choice.num_sentences] for side in lines)
    if not any(line.strip() for line in sources):
        raise DragomanError(f"{name} has no sentence to compare on", GIVE_TEXT)
    return Sample(name, sources, references, original.languages[1])


def _dev_set(data: Path) -> tuple[str, tuple[list[str], list[str]]]:
    shards = open_shards(data)
    if not shards.dev_sets:
        raise DragomanError(f"{data} has no dev set", GIVE_TEXT)
    return shards.dev_sets[0].name, shards.dev_sets[0].lines()


def _data_folder(original: Original) -> Path:
    if original.run is None:
        raise DragomanError(f"{original.folder.path} does not say which data it was trained on", GIVE_TEXT)
    folder = Path(read_manifest(original.run).data.path)
    if not folder.is_dir():
        raise DragomanError(f"the data folder of that run, {folder}, is not here", GIVE_TEXT)
    return folder
