"""Questions 8 and 9: which files make up a checkpoint, what each holds, how big it is, and what one would ship."""

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Number, not_recorded
from dragoman.diagnose.wording import joined, size_text
from dragoman.run.checkpoint_files import OPTIMIZER, RECIPE, STATE, VOCAB, WEIGHTS
from dragoman.units import format_bytes, format_count, plural

HOLDS = {
    WEIGHTS: "the parameters of the model",
    OPTIMIZER: "Adam's two averages of every gradient",
    STATE: "the step, counters and a checksum of every file",
    RECIPE: "every setting",
    VOCAB: "the pieces of the vocabulary",
}
SHIPPED = (WEIGHTS, VOCAB, RECIPE)
NO_CHECKPOINT = "No checkpoint lies in the run folder and none is recorded as written."
SAVE = "Checkpoints: `dragoman train` writes one every checkpoint.every_steps steps and at every evaluation."


def checkpoint_files(facts: Facts) -> tuple[str, dict[str, int]]:
    """(name, file -> bytes) of the newest checkpoint that training could go on from; from disk, else as recorded."""
    whole = [item for item in facts.run.checkpoints if item.step is not None and item.files]
    if whole:
        newest = max(whole, key=lambda item: item.step or 0)
        return newest.name, {file.name: file.num_bytes for file in newest.files}
    for event in reversed(facts.run.events_of("checkpoint")):
        files = event.detail.get("files")
        if isinstance(files, dict) and files:
            sizes: dict[object, object] = {**files}
            known = {str(name): size for name, size in sizes.items() if isinstance(size, int) and size >= 0}
            if known:
                return f"step-{event.step:08d}", known
    return "", {}


def answer_files(facts: Facts) -> Answer:
    """8. Files by name, and which of them a translator needs."""
    name, files = checkpoint_files(facts)
    if not files:
        return not_recorded(8, NO_CHECKPOINT, SAVE)
    told = [f"{joined([f'`{file}` holds {content_of(file)}' for file in _by_size(files)])}."]
    shipped = [file for file in SHIPPED if file in files]
    if shipped:
        told.append(
            f"To translate one needs {joined([f'`{file}`' for file in shipped])} alone "
            f"({format_bytes(sum(files[file] for file in shipped))}); the rest is only for going on with training."
        )
    if facts.num_hosts > 1:
        told.append(
            "Every host keeps a checkpoint on its own disk; files of single ranks lie on the host of that rank."
        )
    best = next(
        (item for item in facts.run.checkpoints if "best-bleu" in item.pointers or "best-loss" in item.pointers), None
    )
    if best is not None:
        told.append(f"The one to ship is {best.name}, with the best {_pointed(best.pointers)} on the dev set.")
    return Answer(
        number=8,
        question=QUESTIONS[7],
        verdict=f"{plural(len(files), 'file')}.".capitalize(),
        sentences=" ".join(told),
        numbers=tuple(Number(file, _file_size(files[file])) for file in _by_size(files)),
        chart="checkpoint",
        evidence=f"The files of checkpoint {name}.",
    )


def answer_size(facts: Facts) -> Answer:
    """9. MB and MiB, bytes per parameter, and what one would ship."""
    name, files = checkpoint_files(facts)
    if not files:
        return not_recorded(9, NO_CHECKPOINT, SAVE)
    total, parameters = sum(files.values()), facts.run.manifest.num_parameters
    told = ["A MB is 1,000,000 bytes and a MiB 1,048,576: both numbers are of the same files."]
    if parameters > 0:
        told.append(_arithmetic(files, total, parameters))
        told.append(f"To ship: {size_text(2 * parameters)} in fp16, about {size_text(parameters)} in int8.")
    link = facts.link
    travels = f" ({format_bytes(link.step_bytes)} out of each host in a step)" if link and link.step_bytes else ""
    where = "machines" if facts.num_hosts > 1 else "ranks"
    exchange = f"None of this travels between the {where} in a step: what travels is the exchange{travels}."
    told.append(exchange if facts.num_ranks > 1 else "It is written to disk and crosses no network.")
    numbers = [Number("Checkpoint", size_text(total))]
    if parameters > 0:
        numbers += [
            Number("Per parameter", f"{total / parameters:.2f} bytes"),
            Number("To ship, fp16", size_text(2 * parameters)),
            Number("To ship, int8", f"about {size_text(parameters)}"),
        ]
    return Answer(
        number=9,
        question=QUESTIONS[8],
        verdict=f"{size_text(total)}.",
        sentences=" ".join(told),
        numbers=tuple(numbers),
        chart="checkpoint",
        evidence=f"Sizes of the files of checkpoint {name}, as they lie on the disk or were recorded when written.",
    )


def _arithmetic(files: dict[str, int], total: int, parameters: int) -> str:
    """'60.9 M parameters x 12 bytes: 4 of the weight and 8 of Adam's two averages'."""
    known = [(WEIGHTS, "of the weights"), (OPTIMIZER, "of Adam's two averages")]
    ranks = sum(size for file, size in files.items() if file.startswith("rank-"))
    parts = [f"{files[file] / parameters:.3g} {what}" for file, what in known if file in files]
    if ranks:
        parts.append(f"{ranks / parameters:.3g} of what is a rank's own")
    return (
        f"It is {format_count(parameters)} parameters x {total / parameters:.3g} bytes: {joined(parts)}."
        if parts
        else f"It is {format_count(parameters)} parameters x {total / parameters:.3g} bytes."
    )


def content_of(file: str) -> str:
    """What one file of a checkpoint holds."""
    if file.startswith("rank-"):
        return "what is one rank's own (error feedback, a replica's weights and averages)"
    return HOLDS.get(file, "something this version does not know")


def _file_size(num_bytes: int) -> str:
    return size_text(num_bytes) if num_bytes >= 1e6 else format_bytes(num_bytes)


def _by_size(files: dict[str, int]) -> list[str]:
    return sorted(files, key=lambda file: (-files[file], file))


def _pointed(pointers: tuple[str, ...]) -> str:
    names = {"best-bleu": "BLEU", "best-loss": "loss"}
    return joined([names[pointer] for pointer in ("best-bleu", "best-loss") if pointer in pointers])
