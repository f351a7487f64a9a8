"""The colours of the pictures: every one of them here, so that the style sheet can exchange it in the dark."""

COLOURS = {
    "ink": "#374151",
    "muted": "#6b7281",
    "grid": "#e5e7ec",
    "first": "#2563a8",
    "second": "#c8622d",
    "third": "#3f8f6b",
    "fourth": "#7a5ba8",
    "faint": "#c3cad4",
}
# Blue computes, orange and yellow wait, green judges and saves.
PART_COLOURS = {
    "forward": "#2a6cb3",
    "backward": "#6097cf",
    "optimizer": "#a3c4e4",
    "transfer": "#d0672f",
    "waiting": "#e9a57c",
    "data": "#e3ab45",
    "validation": "#3e9270",
    "checkpoint": "#8ac2aa",
    "other": "#b9bfc8",
}
SERIES = [COLOURS[name] for name in ("first", "second", "third", "fourth")]

# What the style sheet puts in place of each colour in the dark; the others are bright enough.
DARK = {
    COLOURS["ink"]: "#d5dae1",
    COLOURS["muted"]: "#98a2b0",
    COLOURS["grid"]: "#2c333d",
    COLOURS["first"]: "#6eaae6",
    COLOURS["second"]: "#e8955f",
    COLOURS["third"]: "#6fc29b",
    COLOURS["fourth"]: "#b39be0",
    COLOURS["faint"]: "#4a5361",
    PART_COLOURS["forward"]: "#4f93da",
    PART_COLOURS["backward"]: "#3b71ab",
    PART_COLOURS["optimizer"]: "#2b5077",
    PART_COLOURS["waiting"]: "#b97f5c",
    PART_COLOURS["other"]: "#5a626e",
}
