"""`README.md` of an export: what the model is, what it learned from, how good it is, how to use it, what to beware.

Text only, from what the run recorded; what it did not record is said so.
"""

from typing import Any

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.run.figures import best_by_bleu, duration_seconds
from dragoman.run.reader import RunRecord, read_run
from dragoman.run.records import EvalRecord, Manifest, SideSize
from dragoman.translate.export.original import Original
from dragoman.translate.export_folder import ExportInfo
from dragoman.units import format_bytes, format_count, format_money, format_seconds, plural

UNKNOWN = "not recorded"
USES = {
    "ctranslate2": "`python example.py < text` translates line by line. It needs `pip install ctranslate2 "
    "sentencepiece` and nothing of Dragoman.",
    "huggingface": "`python example.py < text` translates line by line. It needs `pip install transformers torch` and "
    "nothing of Dragoman. `generate` counts the end of a sentence in its length, Dragoman does not: of two "
    "translations that score nearly alike they may choose different ones.",
}
LIBRARIES = {"ctranslate2": "ctranslate2", "huggingface": "transformers"}


def card(info: ExportInfo, original: Original) -> str:
    run = _read(original)
    recipe = original.folder.recipe
    manifest = run.manifest if run else None
    sections = [
        _front_matter(info),
        f"# {_direction(info)} translation",
        _summary(info, manifest),
        f"## Use\n\n{USES[info.format]}\n\nWith Dragoman: `dragoman translate FOLDER`, `dragoman evaluate FOLDER`.",
        "## Quality\n\n" + _quality(info, run),
        "## Data\n\n" + _data(manifest),
        "## Training\n\n" + _training(recipe, run),
        "## Limits\n\n" + _limits(info, recipe, manifest),
    ]
    return "\n\n".join(sections) + "\n"


def _read(original: Original) -> RunRecord | None:
    try:
        return read_run(original.run.path) if original.run else None
    except DragomanError:  # a model is worth shipping without its history
        return None


def _front_matter(info: ExportInfo) -> str:
    # Quoted, because YAML reads Norwegian's `no` as false.
    languages = [f'- "{code}"' for code in (info.source_language, info.target_language) if code]
    language = ["language:", *languages] if languages else []
    lines = [
        *language,
        "pipeline_tag: translation",
        f"library_name: {LIBRARIES[info.format]}",
        "tags:",
        "- translation",
        "- dragoman",
        "metrics:",
        "- bleu",
        "- chrf",
    ]
    return "\n".join(["---", *lines, "---"])


def _direction(info: ExportInfo) -> str:
    return f"{info.source_language or 'Unknown'} to {info.target_language or 'unknown'}"


def _summary(info: ExportInfo, manifest: Manifest | None) -> str:
    size = f"{format_count(manifest.num_parameters)} parameters" if manifest else f"parameters: {UNKNOWN}"
    origin = info.origin
    weights = f"the mean of {origin.num_averaged} checkpoints up to step" if origin.num_averaged > 1 else "step"
    step = UNKNOWN if origin.step is None else f"{origin.step:,}"
    num_bytes = sum(entry.num_bytes for entry in info.files.values())
    return "\n".join(
        [
            f"- From {info.source_language or UNKNOWN} to {info.target_language or UNKNOWN}.",
            f"- A Transformer, {size}; recipe `{origin.recipe}`, run `{origin.run or UNKNOWN}`, {weights} {step}.",
            f"- Format {info.format}, {info.quantization}, {format_bytes(num_bytes)}; exported {info.created} by "
            f"Dragoman {info.dragoman}.",
            *(["- The weights are not the bytes that the run wrote."] if origin.has_changed_weights else []),
            f"- Licence: {UNKNOWN}; the licences of the training text apply.",
        ]
    )


def _quality(info: ExportInfo, run: RunRecord | None) -> str:
    gate = info.gate
    rows = [_score_row(gate, name) for name in gate["scores"]]
    table = "\n".join(["| | export | original | difference, 95 % interval |", "|---|---|---|---|", *rows])
    signatures = "\n".join(f"- {name}: `{each['signature']}`" for name, each in gate["scores"].items())
    where = f"On the first {plural(gate['num_sentences'], 'sentence')} of `{gate['dev_set']}`"
    how = f"beam {info.decode.beam}, computed as {gate['compute_type']}"
    checks = "\n".join(f"- {check['text']}" for check in gate["checks"])
    return (
        f"{where}, {how}; a set that also chose the checkpoint flatters:\n\n{table}\n\n{signatures}\n\n"
        f"The export was compared with the original, and passed:\n\n{checks}\n\nWhile training: {_best_eval(run)}"
    )


def _score_row(gate: dict[str, Any], name: str) -> str:
    each = gate["scores"][name]
    interval = f"{each['delta']:+.2f} [{each['low']:+.2f}, {each['high']:+.2f}]"
    return f"| {name} | {each['export']:.2f} | {each['original']:.2f} | {interval} |"


def _best_eval(run: RunRecord | None) -> str:
    best: EvalRecord | None = best_by_bleu(run.evals) if run else None
    if best is None or best.chrf is None:
        return f"{UNKNOWN}."
    return (
        f"BLEU {best.bleu:.2f} (`{best.bleu_signature}`), chrF {best.chrf:.2f} (`{best.chrf_signature}`) at step "
        f"{best.step:,} on {plural(best.num_decoded, 'sentence')} of `{best.dev_set}`."
    )


def _data(manifest: Manifest | None) -> str:
    if manifest is None:
        return f"{UNKNOWN.capitalize()}."
    data = manifest.data
    corpora = ", ".join(f"`{name}` ({count:,} pairs)" for name, count in data.corpora.items())
    sets = {"Dev sets": data.dev_sets, "Test sets, never trained on": data.test_sets}
    return "\n".join(
        [
            f"- {data.num_pairs:,} sentence pairs after cleaning. Corpora: {corpora or UNKNOWN}.",
            f"- {_side(data.source)}; {_side(data.target)}.",
            *(f"- {name}: {_counts(counts)}." for name, counts in sets.items()),
            f"- Vocabulary: {data.vocab_size:,} SentencePiece pieces, shared by both languages.",
            f"- sha256 of all shards and the vocabulary together: `{data.fingerprint}`.",
            "- Pairs of dev and test sets were taken out of the training text."
            if data.removes_overlap
            else "- Dev and test pairs were not taken out of the training text: scores may be too high.",
        ]
    )


def _side(side: SideSize) -> str:
    return f"{side.language}: {format_bytes(side.clean_bytes)}, {format_count(side.num_tokens)} pieces"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"`{name}` ({count:,} pairs)" for name, count in counts.items()) or UNKNOWN


def _training(recipe: Recipe, run: RunRecord | None) -> str:
    model, optim = recipe.model, recipe.optim
    lines = [
        f"- Model: width {model.d_model}, {model.num_heads} heads, feed-forward {model.d_ffn}, "
        f"{model.num_encoder_layers} encoder and {model.num_decoder_layers} decoder layers, {model.norm}-norm, "
        f"{model.activation}, dropout {model.dropout}.",
        f"- Optimizer: {optim.method}, schedule {optim.schedule}, learning rate {optim.learning_rate}, "
        f"{plural(optim.warmup_steps, 'warm-up step')}, label smoothing {recipe.train.label_smoothing}, "
        f"{recipe.batch.target_tokens:,} target tokens a step.",
    ]
    if run is None:
        return "\n".join([*lines, f"- Time, machines and cost: {UNKNOWN}."])
    seconds = duration_seconds(run)
    return "\n".join([*lines, f"- Time: {_time(run, seconds)}.", *_machines(run.manifest, seconds)])


def _time(run: RunRecord, seconds: float) -> str:
    if not run.steps:
        return UNKNOWN
    return f"{format_seconds(seconds)}, {plural(run.steps[-1].step, 'step')}"


def _machines(manifest: Manifest, seconds: float) -> list[str]:
    machines = [", ".join([*host.gpus, f"{host.num_cores} cores of {host.cpu}"]) for host in manifest.hosts]
    price = manifest.price_per_hour
    cost = UNKNOWN if price is None else format_money(price * seconds / 3600, manifest.currency or "$")
    ranks = plural(manifest.world_size, "rank")
    return [
        f"- Machines: {'; '.join(machines) or UNKNOWN} ({ranks}, {manifest.precision}).",
        f"- Cost: {cost}.",
        f"- Versions: {', '.join(f'{name} {version}' for name, version in manifest.versions.items())}.",
    ]


def _limits(info: ExportInfo, recipe: Recipe, manifest: Manifest | None) -> str:
    corpora = ", ".join(f"`{name}`" for name in manifest.data.corpora) if manifest else UNKNOWN
    return "\n".join(
        [
            f"- One sentence at a time. It was trained on sentences of up to {info.max_pieces} pieces; its positions "
            f"end at {info.max_positions}; Dragoman cuts longer ones, `example.py` does not.",
            f"- Its domain is that of its training text ({corpora}). On other kinds of text it was not tested.",
            "- It was not tested for names, numbers, offensive or private content, dialects, text in other languages; "
            "it can leave out, repeat or invent words.",
            f"- The figures above are for beam {info.decode.beam}, length penalty {info.decode.length_penalty}, at "
            f"most {info.decode.max_length} pieces.",
        ]
    )
