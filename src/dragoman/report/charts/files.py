"""Charts of files: the training set at every stage, and the files of a checkpoint."""

from dragoman.diagnose.answers.checkpoint import checkpoint_files
from dragoman.diagnose.facts import Facts
from dragoman.report.charts.drawing import Figure, Row, bars
from dragoman.report.palette import COLOURS
from dragoman.units import format_bytes

MAX_FILES = 6
STAGES = (("as given", "raw_bytes"), ("cleaned", "clean_bytes"), ("cut into pieces", "bpe_bytes"))


def data_sizes(facts: Facts) -> Figure | None:
    """Both sides at every stage."""
    data = facts.run.manifest.data
    sides = ((data.source, COLOURS["first"]), (data.target, COLOURS["third"]))
    rows: list[Row] = [
        {"name": f"{side.language} {stage}", "value": size, "colour": colour, "label": format_bytes(size)}
        for stage, name in STAGES
        for side, colour in sides
        if (size := getattr(side, name)) > 0
    ]
    # A side that is named like the other one would share its bar.
    if not rows or len({row["name"] for row in rows}) < len(rows):
        return None
    caption = "Text of both sides, in bytes. The same sentences cut into pieces take more bytes and hold the same."
    return Figure("data", "The training set, stage by stage", caption, bars(rows, bar_height=18))


def checkpoint(facts: Facts) -> Figure | None:
    """The largest files of the newest checkpoint, the others together."""
    name, files = checkpoint_files(facts)
    if not files:
        return None
    ordered = sorted(files.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ordered[:MAX_FILES], ordered[MAX_FILES:]
    if rest:
        shown = [*shown, (f"{len(rest)} smaller files", sum(size for _, size in rest))]
    rows: list[Row] = [
        {"name": file, "value": size, "colour": COLOURS["first"], "label": format_bytes(size)} for file, size in shown
    ]
    return Figure("checkpoint", "The files of a checkpoint", f"{name}, as its bytes lie on the disk.", bars(rows))
