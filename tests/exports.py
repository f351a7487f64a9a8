"""Exports of the small run, made without asking for a progress bar."""

from pathlib import Path

from dragoman.translate.export.exporter import Exported, Request, export_model
from dragoman.translate.export.sample import SampleChoice


def quiet(_description: str, _total: int):
    return lambda _count: None


def export_here(model: Path, out: Path, to: str = "ctranslate2", num_sentences: int = 20, **options) -> Exported:
    return export_model(Request(model, to, out, sample=SampleChoice(num_sentences=num_sentences), **options), quiet)
