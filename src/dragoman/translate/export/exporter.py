"""From a run to a folder to ship: write, compare with the original, describe, and only then give it its name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dragoman import __version__
from dragoman.errors import CheckFailed, DragomanError
from dragoman.hashing import file_sha256
from dragoman.model.transformer import Transformer
from dragoman.translate.engine_torch import TorchEngine
from dragoman.translate.export.card import card
from dragoman.translate.export.example import example
from dragoman.translate.export.gate import Check, Sample, Verdict, check_tokenizer, judge, to_record
from dragoman.translate.export.original import Original, find_original
from dragoman.translate.export.outputs import Watch, make_outputs
from dragoman.translate.export.sample import SampleChoice, find_sample
from dragoman.translate.export.staging import publish, staged
from dragoman.translate.export_folder import NAME, SCHEMA, ExportInfo, FileEntry, Format
from dragoman.translate.libraries import require_library
from dragoman.translate.translator import Translator
from dragoman.units import plural

QUANTIZATIONS: dict[Format, tuple[str, ...]] = {  # the default of each first
    "ctranslate2": ("int8", "int8_float16", "float16", "float32"),
    "huggingface": ("float32", "float16"),
}
LIBRARIES: dict[Format, str] = {"ctranslate2": "ctranslate2", "huggingface": "transformers"}
DEVICE = "cpu"  # where float32 is float32: a GPU's matrix products and fused kernels round more


@dataclass(frozen=True)
class Request:
    """An export that was asked for."""

    model: Path
    format: Format
    out: Path
    quantization: str | None = None  # None: the format's default
    num_averaged: int | None = None
    sample: SampleChoice = field(default_factory=SampleChoice)
    threads: int | None = None
    is_forced: bool = False


@dataclass(frozen=True)
class Exported:
    """An export that passed its gate."""

    path: Path
    info: ExportInfo
    verdict: Verdict
    notes: tuple[str, ...]


def export_model(request: Request, watch: Watch) -> Exported:
    """Nothing appears under the final name unless the export translates as the original does."""
    quantization = _quantization(request)
    require_library(LIBRARIES[request.format], f"an export for {request.format}")
    with staged(request.out) as workplace:
        original = find_original(request.model, request.num_averaged, request.is_forced, workplace / "average")
        sample = find_sample(request.sample, original)
        source = Translator(original.folder.path, DEVICE, request.threads)
        assert isinstance(source.engine, TorchEngine)
        folder = workplace / "export"
        folder.mkdir()
        _write_model(request.format, source.engine.model, original, folder, quantization)
        info = _describe(request.format, quantization, original, folder)
        _write_info(info, folder)
        verdict, compute_type = _compare(source, folder, sample, info, request.threads, watch)
        if not verdict.passed:
            raise _refusal(verdict, request)
        info = info.model_copy(update={"gate": {**to_record(verdict), "compute_type": compute_type}})
        _write_info(info, folder)
        (folder / "example.py").write_text(example(request.format, info.decode), encoding="utf-8")
        (folder / "README.md").write_text(card(info, original), encoding="utf-8")
        publish(folder, request.out)
    return Exported(request.out, info, verdict, tuple(_notes(info)))


def _quantization(request: Request) -> str:
    known = QUANTIZATIONS[request.format]
    if request.quantization is None:
        return known[0]
    if request.quantization not in known:
        raise DragomanError(
            f"an export for {request.format} cannot be {request.quantization}", f"it can be {', '.join(known)}"
        )
    return request.quantization


def _write_model(format: Format, model: Transformer, original: Original, folder: Path, quantization: str) -> None:
    from dragoman.data.vocab import Vocab

    vocab = Vocab.load(original.folder.vocab_path)
    (folder / "vocab.model").write_bytes(original.folder.vocab_path.read_bytes())
    if format == "ctranslate2":
        from dragoman.translate.export.ctranslate2 import to_ctranslate2

        to_ctranslate2(model, vocab, folder, quantization)
    else:
        from dragoman.translate.export.huggingface_folder import write_huggingface

        write_huggingface(model, vocab, original.folder.recipe.decode, folder, quantization)


def _describe(format: Format, quantization: str, original: Original, folder: Path) -> ExportInfo:
    """With the checksums of what a model is made of; the card and the example may be edited."""
    recipe = original.folder.recipe
    files = {
        path.name: FileEntry(num_bytes=path.stat().st_size, sha256=file_sha256(path))
        for path in sorted(folder.iterdir())
    }
    return ExportInfo(
        schema=SCHEMA,
        format=format,
        quantization=quantization,
        dragoman=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source_language=original.languages[0],
        target_language=original.languages[1],
        max_positions=recipe.model.max_positions,
        max_pieces=recipe.batch.max_pieces,
        learned_placeholders=recipe.vocab.placeholder_share > 0,
        decode=recipe.decode,
        origin=original.origin,
        gate={},
        files=files,
    )


def _write_info(info: ExportInfo, folder: Path) -> None:
    (folder / NAME).write_text(info.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")


def _compare(
    source: Translator, folder: Path, sample: Sample, info: ExportInfo, threads: int | None, watch: Watch
) -> tuple[Verdict, str]:
    is_exact = info.quantization == "float32"
    original = make_outputs(source, sample, is_exact, "original", watch)
    export = Translator(folder, DEVICE, threads)
    found = make_outputs(export, sample, is_exact, "export", watch)
    extra = [_tokenizer_check(export, folder, sample)] if info.format == "huggingface" else []
    compute_type = _compute_type(export)
    return judge(sample, original, found, extra), compute_type


def _tokenizer_check(export: Translator, folder: Path, sample: Sample) -> Check:
    from dragoman.data.vocab import EOS_ID
    from dragoman.translate.export.huggingface_folder import load_tokenizer

    encode: Callable[..., dict[str, list[list[int]]]] = load_tokenizer(folder)
    lines = [" ".join(line.split()) for line in (*sample.sources, *sample.references)]
    expected = [[*ids, EOS_ID] for ids in export.engine.vocab.encode(lines)]
    return check_tokenizer(expected, encode(lines)["input_ids"])


def _compute_type(export: Translator) -> str:
    """What the numbers really were while they were compared."""
    translator = getattr(export.engine, "translator", None)
    return "float32" if translator is None else str(translator.compute_type)


def _refusal(verdict: Verdict, request: Request) -> CheckFailed:
    checks = "\n".join(f"  {'    ' if check.passed else 'NOT '}{check.text}" for check in verdict.checks)
    differences = "\n".join(verdict.differences)
    where = f"{plural(len(verdict.sample.sources), 'sentence')} of {verdict.sample.name}"
    message = f"the export does not translate as the original does, on {where}"
    hint = f"nothing was written to {request.out}; try --quantization float32, or more --sentences"
    return CheckFailed(f"{message}\n{checks}\n{differences}", hint)


def _notes(info: ExportInfo) -> list[str]:
    notes: list[str] = []
    compute_type = info.gate["compute_type"]
    if "float16" in info.quantization and "float16" not in compute_type:
        notes.append(f"this machine computes {info.quantization} as {compute_type}: that is what was compared")
    if info.origin.has_changed_weights:
        notes.append("the weights are not those that the run wrote; the card says so")
    return notes
