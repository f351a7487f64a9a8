"""The style sheet of the page, with its exchange of the pictures' colours in the dark."""

from importlib import resources

from dragoman.report.palette import DARK


def style_sheet() -> str:
    sheet = (resources.files("dragoman.report") / "templates" / "style.css").read_text(encoding="utf-8")
    rules = [f'[{part}="{light}"] {{ {part}: {dark}; }}' for light, dark in DARK.items() for part in ("fill", "stroke")]
    return f"{sheet}@media screen and (prefers-color-scheme: dark) {{\n  " + "\n  ".join(rules) + "\n}\n"
