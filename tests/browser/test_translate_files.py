"""Files on the translation page: translated in pieces, in their layout, with a name of their own."""

import re
import time

import pytest

from dragoman.translate.documents.formats import split_document
from dragoman.web.serve.limits import Limits
from shouting_server import shout, shouting_server

HTML = """<!doctype html>
<html lang="en">
<!-- a remark <p>of mine</p> -->
<head><title>Our year</title><style>p { color: red }</style></head>
<body>
<h1 class="big">Our year</h1>
<p>The <b>schools</b> need more money. They said so.</p>
<pre>keep   = <p>this as it is</p></pre>
<script>if (1 < 2) { keep("<p>this too</p>") }</script>
<div translate="no"><p>Not this</p><div>nor this</div></div>
<ul><li>One point &amp; another</li><li>Two <code>x = 1</code> points</li></ul>
</body>
</html>
"""
MARKDOWN = """---
title: leave me
---
# Our year

The **schools** need [more money](https://example.org). They said so.

```python
keep = "this as it is"

keep = "and this"
```
- one point
- two `code` points, and some more words until a cut would fall before a rule

---
The end is near.
"""


@pytest.mark.parametrize(
    ("name", "text", "kind", "translated"),
    [("report.html", HTML, "html", "report.de.html"), ("notes.en.md", MARKDOWN, "markdown", "notes.de.md")],
)
def test_a_dropped_document_comes_back_in_its_layout(open_translation, name, text, kind, translated):
    """In pieces of 80 characters, each cut so that the whole is as if it had been translated at once."""
    with shouting_server(Limits(max_characters=80)) as shouting:
        page = open_translation(f"{shouting.address}#en/de")
        page.drop(name, text)
        page.page.wait_for_selector("#document-download")
        assert page.page.locator("#panes").is_hidden() and page.page.locator("#drop").is_hidden()
        assert len(page.asked) > 2 and {asked["format"] for asked in page.asked} == {kind}
        document = split_document(text, kind, "en")
        whole = document.filled([shout(sentence.text).text for sentence in document.sentences])
        whole = whole.replace('lang="en"', 'lang="de"')
        assert page.download() == (translated, whole)
        assert page.page.locator("#document-result").inner_text().strip() == whole.strip()
        assert page.status == f"{name} is translated; the download is called {translated}."
        page.page.click("#document-close")
        assert page.page.locator("#panes").is_visible() and page.focused == "choose-file"


def test_a_chosen_file_can_be_cancelled_and_its_language_is_told(shouting, open_translation):
    shouting.before = lambda sentences: time.sleep(0.5)
    page = open_translation(shouting.address)
    lines = "".join(f"This is the sentence of the number {number} in a long file.\n" for number in range(1000))
    with page.page.expect_file_chooser() as chooser:
        page.page.click("#choose-file")
    chooser.value.set_files({"name": "long.txt", "mimeType": "text/plain", "buffer": lines.encode()})
    page.page.wait_for_function("() => document.querySelector('#document-progress').value > 0")
    assert page.page.locator("#document-progress").evaluate("bar => bar.value < 0.9")
    assert re.fullmatch(r"Translating long\.txt: \d+ %\.", page.status)
    assert {asked["source"] for asked in page.asked} == {"en"}
    page.page.click("#document-cancel")
    assert page.status == "Cancelled; nothing was kept."
    num_asked = len(page.asked)
    page.page.wait_for_timeout(1200)
    assert len(page.asked) == num_asked and page.page.locator("#document").is_hidden()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("photo.png", b"\x89PNG", "photo.png cannot be translated: only .txt, .md and .html files can."),
        ("old.txt", b"caf\xe9", "old.txt is not text in UTF-8: save it so and try again."),
    ],
)
def test_a_file_that_cannot_be_translated(shouting, open_translation, name, content, told):
    page = open_translation(shouting.address)
    page.page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content})
    page.wait_for("#status", told)
    assert page.page.locator("#panes").is_visible()
