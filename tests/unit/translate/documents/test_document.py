"""Sentences out of documents and back: everything between them stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.translate.documents.formats import format_of, split_document

HTML = """<!DOCTYPE html>
<html><head><title>My page</title><script>var x = "<b>no</b> 1 < 2";</script><!-- a comment. Really. --></head>
<body class="a"><h1>Hello   world</h1>
<p>Click <a href="https://x.y/z?a=1&amp;b=2">here &amp; now</a> to <b>start</b>. It costs &lt; 5.<br>New line.</p>
<pre>keep <i>this</i></pre><p>Use <code>git push</code> often.</p><p translate="no">Stay <p>here</p></p>
<ul><li>One<li>Two</ul><img src=a.png alt="x"> <span class="notranslate">No</span></body></html>
"""
MARKDOWN = """---
title: Not this
---
# A title

Some **bold** text with `code` and a [link to it](https://a.b/c "t"). Second *sentence*.

- item one
- [x] item two
1. first

| a word | b |
|---|---|
| one | 2 |

```python
print("no")
```
> quoted snake_case here
"""


def sentences(text, kind="text") -> list[str]:
    return [sentence.text for sentence in split_document(text, kind, "en").sentences]


def unchanged(text, kind) -> str:
    document = split_document(text, kind, "en")
    return document.filled([sentence.text for sentence in document.sentences])


def test_lines_bullets_and_blanks():
    text = "  Dr. Smith came. He sat\tdown!  \r\n\r\n\n- One.\n 1.5 \n***\n\x0bOdd\u2028line"
    assert sentences(text) == ["Dr. Smith came.", "He sat\tdown!", "One.", "Odd", "line"]
    assert unchanged(text, "text") == text


@pytest.mark.parametrize(("kind", "text"), [("html", HTML), ("markdown", MARKDOWN)])
def test_a_translation_that_is_its_source_gives_the_same_document(kind, text):
    assert unchanged(text, kind) == text


def test_html_is_blocks_with_inline_tags_behind_marks():
    assert sentences(HTML, "html") == [
        "My page",
        "Hello   world",
        "Click <x1> here & now <x2> to <x3> start <x4>.",
        "It costs < 5.",
        "New line.",
        "Use <x1> often.",
        "One",
        "Two",
    ]


def test_markdown_leaves_code_and_layout_alone():
    assert sentences(MARKDOWN, "markdown") == [
        "A title",
        "Some <x1> bold <x2> text with <x3> and a <x4> link to it <x5>.",
        "Second <x6> sentence <x7>.",
        "item one",
        "item two",
        "first",
        "a word",
        "b",
        "one",
        "quoted snake_case here",
    ]


def test_spaces_inside_tags_go_and_text_is_escaped():
    document = split_document("<p>Say <b>yes</b> &amp; go</p>", "html", "en")
    assert document.filled(["Sag <x1> ja & <x2> < geh"]) == "<p>Sag <b>ja &amp;</b> &lt; geh</p>"


@pytest.mark.parametrize(
    ("source", "translation", "filled"),
    [
        ("un<b>believ</b>able", "un <x1> glaub <x2> lich", "un<b>glaub</b>lich"),
        ("Go (<b>Berlin</b>) now", "Geh ( <x1> Berlin <x2> ) jetzt", "Geh (<b>Berlin</b>) jetzt"),
        ("Go (<b>Berlin</b>) now", "Geh nach <x1> Berlin <x2> jetzt", "Geh nach <b>Berlin</b> jetzt"),
        ("a <b>b</b>, c", "x , y <x1>z <x2>", "x , y <b>z</b>"),
        ("need <b>money</b> now.", "brauchen jetzt <x1> Geld <x2> .", "brauchen jetzt <b>Geld</b>."),
        ("a <b>b</b> <i>c</i> d", "d <x3>c<x4><x1> b <x2>", "d <i>c</i> <b>b</b>"),
    ],
)
def test_marks_touch_what_they_touched(source, translation, filled):
    assert split_document(f"<p>{source}</p>", "html", "en").filled([translation]) == f"<p>{filled}</p>"


def test_links_and_emphasis_of_markdown_keep_their_order():
    document = split_document("Read [this **bold** book](http://a.b) or *that* one", "markdown", "en")
    assert document.sentences[0].text == "Read <x1> this <x2> bold <x3> book <x4> or <x5> that <x6> one"
    crossed = "Lies <x4> das <x2> dicke <x3> Buch <x1> oder <x6> jenes <x5>"
    assert document.filled([crossed]) == "Lies [das **dicke** Buch](http://a.b) oder *jenes*"
    moved = "<x5> Jenes <x6> oder <x1> das <x2> dicke <x3> Buch <x4> lesen"
    assert document.filled([moved]) == "*Jenes* oder [das **dicke** Buch](http://a.b) lesen"


def test_tags_that_would_cross_each_other_keep_the_order_of_the_source():
    document = split_document("<p>a <b>b</b> <i>c</i> d</p>", "html", "en")
    assert document.filled(["<x3>c<x4> <x1>b<x2>"]) == "<p><i>c</i> <b>b</b></p>"
    assert document.filled(["<x2>b<x1> c"]) == "<p><b>b</b> c</p>"


def test_a_format_follows_from_a_name():
    names = ["a.html", "A.HTM", "b.md", "c.markdown", "d.txt", "e", "html"]
    assert [format_of(name) for name in names] == ["html", "html", "markdown", "markdown", "text", "text", "html"]


@given(st.text(max_size=200), st.sampled_from(["text", "markdown"]))
def test_any_text_survives(text, kind):
    assert unchanged(text, kind) == text


@given(st.text(st.sampled_from("<>/ab &;!-\"=' \n.x1"), max_size=80))
def test_any_html_is_read(text):
    assert isinstance(unchanged(text, "html"), str)
