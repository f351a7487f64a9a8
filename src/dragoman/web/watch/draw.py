"""Draws the report of a run once: `python -m dragoman.web.watch.draw RUN` prints one JSON value. Not for people."""

import json
import os
import re
import sys
import time

from dragoman.errors import DragomanError
from dragoman.report.page import render_page
from dragoman.run.reader import read_run

_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)


def draw(path: str) -> dict[str, str]:
    """The inside of the page's `<main>`, and its title as HTML."""
    try:
        page = render_page(read_run(path))
    except DragomanError as error:
        return {"html": "", "title": "", "problem": error.message}
    title = _TITLE.search(page)
    return {"html": inside(page), "title": title.group(1) if title else "", "problem": ""}


def inside(page: str) -> str:
    """Everything below `<main>`: the page around it is another one here."""
    start = page.index("<main>") + len("<main>")
    return page[start : page.rindex("</main>")]


def main() -> None:
    os.nice(19)
    answer = draw(sys.argv[1])
    sys.stdout.write(json.dumps({**answer, "cpu_seconds": time.process_time()}))


if __name__ == "__main__":
    main()
