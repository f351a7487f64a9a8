"""The translation page in a real browser, against the real service with a translator that shouts backwards."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman.translate.documents.document import split_document
from dragoman.web.serve.keys import Keys
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.rate import Rate, RateLimit
from shouting_server import Shouting, serving, shout, shouting_server

EVIL = "<img src=x onerror=alert(1)>"
SHOWN = "[...document.querySelectorAll('#target .line')].map((line) => line.textContent).join('\\n')"
REFUSED = "Failed to load resource"  # what a browser writes of any answer but 200

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


class Page:
    """What a person does and sees."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.asked: list[dict[str, Any]] = []  # what was sent to /translate
        page.on("request", lambda sent: sent.url.endswith("/translate") and self.asked.append(sent.post_data_json))

    def choose(self, source: str, target: str) -> None:
        self.page.select_option("#source-language", source)
        self.page.select_option("#target-language", target)

    def type(self, text: str, delay: float = 0) -> None:
        self.page.locator("#source").press_sequentially(text, delay=delay)

    def wait_for(self, selector: str, text: str) -> None:
        self.page.wait_for_function(
            "([selector, text]) => document.querySelector(selector).innerText.includes(text)", arg=[selector, text]
        )

    def wait_for_translation(self, text: str) -> None:
        self.page.wait_for_function(f"(text) => {SHOWN} === text", arg=text)

    @property
    def translation(self) -> str:
        return self.page.evaluate(SHOWN)

    @property
    def status(self) -> str:
        return self.page.locator("#status").inner_text()

    @property
    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.id || document.activeElement.className")

    def marked(self, pane: str) -> list[str]:
        return self.page.locator(f"{pane} .marked").all_inner_texts()

    def drop(self, name: str, text: str) -> None:
        script = """([name, text]) => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], name));
            for (const kind of ["dragover", "drop"])
                document.body.dispatchEvent(new DragEvent(kind,
                    { dataTransfer: carried, bubbles: true, cancelable: true }));
        }"""
        self.page.evaluate(script, [name, text])

    def download(self) -> tuple[str, str]:
        """The name and the text of the translated file."""
        with self.page.expect_download() as coming:
            self.page.click("#document-download")
        return coming.value.suggested_filename, coming.value.path().read_text(encoding="utf-8")


@pytest.fixture
def shouting() -> Iterator[Shouting]:
    with shouting_server() as running:
        yield running


@pytest.fixture
def open_translation(browser) -> Iterator[Callable[..., Page]]:
    """`open_translation(address)`: whatever the page complains of, and whatever it asks of others, fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def make(address: str, width: int = 1280, height: int = 800, allowed: str = "^$", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        home = re.match(r"http://[^/]+/", address).group()
        page.on("console", lambda said: re.search(allowed, said.text) or complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith((home, "blob:")) or complaints.append(f"asked {sent.url}"))
        wrapped = Page(page)
        page.goto(address)
        page.wait_for_selector("#source-language option[value=en]", state="attached")
        return wrapped

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def test_typing_translates_and_the_address_can_be_shared(shouting, open_translation):
    page = open_translation(shouting.address)
    assert page.focused == "source", "one may type at once"
    page.type("Where is the old house? It was here.\n\nWhat happened to it?")
    page.wait_for_translation("HOUSE? OLD THE IS WHERE HERE. WAS IT\n\nIT? TO HAPPENED WHAT")
    page.wait_for("#status", "Translated in")
    assert page.page.locator("#source-language option:checked").inner_text() == "English (auto)"
    assert page.page.locator("#source").get_attribute("lang") == "en"
    assert page.page.locator("#target").get_attribute("lang") == "de"
    page.page.wait_for_url("**/#auto/de/Where%20is%20the%20old%20house%3F*")
    other = open_translation(page.page.url)
    other.wait_for_translation(page.translation)
    assert other.page.locator("#source").input_value() == page.page.locator("#source").input_value()
    stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])"
    assert page.page.evaluate(stored) == '[{},{},""]'
    page.page.click("#clear")
    page.wait_for_translation("")
    page.page.wait_for_url("**/#auto/de")


def test_what_is_typed_is_text(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.type(f"{EVIL} one שלום two")
    page.wait_for("#target", "ONE")
    assert page.page.locator("#target img, #backdrop img").count() == 0
    assert shout(f"{EVIL} one שלום two").text == page.translation


def test_fast_typing_asks_seldom_and_the_last_text_wins(shouting, open_translation):
    shouting.before = lambda sentences: time.sleep(1.5) if sentences == ["slow"] else None
    page = open_translation(f"{shouting.address}#en/de")
    page.type("a text of some forty letters typed quickly", delay=25)
    page.wait_for("#target", "QUICKLY TYPED")
    assert len(page.asked) <= 3, "not one for every letter"
    gone = []
    page.page.on("requestfailed", lambda sent: gone.append(sent.post_data_json["q"]))
    page.page.fill("#source", "slow")
    page.page.wait_for_function("() => document.querySelector('#busy').hidden === false")
    page.type(" no more")
    page.wait_for_translation("MORE NO SLOW")
    assert gone == [["slow"]], "nobody waits for it any more"
    page.page.wait_for_timeout(1800)
    assert page.translation == "MORE NO SLOW"
    assert page.page.locator("#busy").is_hidden()


def test_an_answer_that_comes_too_late_is_not_shown(shouting, open_translation):
    """Even where it cannot be called back."""
    page = open_translation(f"{shouting.address}#en/de")
    page.page.evaluate("""() => {
        const real = window.fetch;
        window.fetch = async (path, options) => {
            const isLate = options?.body?.includes('"early"');
            const answer = await real(path, { ...options, signal: undefined });
            if (isLate) await new Promise((resolve) => setTimeout(resolve, 1500));
            if (isLate) window.lateOnesArrived = true;
            return answer;
        };
    }""")
    page.type("early")
    page.page.wait_for_timeout(500)
    page.type(" bird")
    page.wait_for_translation("BIRD EARLY")
    page.page.wait_for_function("() => window.lateOnesArrived")
    page.page.wait_for_timeout(100)
    assert page.translation == "BIRD EARLY"


def test_control_enter_does_not_wait(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.page.evaluate("window.setTimeout = () => 0")  # what waits, waits for ever
    page.type("at once")
    page.page.keyboard.press("Control+Enter")
    page.wait_for_translation("ONCE AT")


def test_swap_turns_languages_and_texts_around(shouting, open_translation):
    page = open_translation(shouting.address)
    swap = page.page.locator("#swap")
    assert swap.get_attribute("aria-disabled") == "true" and "not known yet" in swap.get_attribute("title")
    page.type("Good morning my friend")
    page.wait_for_translation("FRIEND MY MORNING GOOD")
    swap.click()
    page.wait_for_translation("friend my morning good")
    assert page.page.locator("#source").input_value() == "FRIEND MY MORNING GOOD"
    assert page.page.eval_on_selector_all("select", "all => all.map(each => each.value)") == ["de", "en"]
    page.choose("en", "fr")
    assert swap.get_attribute("aria-disabled") == "true"
    swap.click(force=True)  # it says that it is disabled, but listens
    assert page.status == "This server does not translate French to English."
    assert page.page.locator("#source-language").input_value() == "en", "nothing was swapped"


def test_copy_tells_that_it_did(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de", permissions=["clipboard-read", "clipboard-write"])
    assert page.page.locator("#copy").is_disabled()
    page.type("one two\n\nthree")
    page.wait_for_translation("TWO ONE\n\nTHREE")
    page.page.click("#copy")
    page.wait_for("#copy", "Copied")
    assert page.page.evaluate("navigator.clipboard.readText()") == "TWO ONE\n\nTHREE"
    assert page.status == "The translation is copied."
    page.page.wait_for_function("() => document.querySelector('#copy').innerText.trim() === 'Copy'")


def test_copy_without_a_clipboard_of_the_page(shouting, open_translation):
    """As over plain HTTP from another machine."""
    page = open_translation(f"{shouting.address}#en/de/one%20two", permissions=["clipboard-read"])
    page.wait_for_translation("TWO ONE")
    page.page.evaluate("navigator.clipboard.writeText = undefined")
    page.page.click("#copy")
    page.wait_for("#copy", "Copied")
    assert page.page.evaluate("navigator.clipboard.readText()") == "TWO ONE"


def test_alternatives_by_mouse(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.type("The first one. And another.")
    page.wait_for_translation("ONE. FIRST THE ANOTHER. AND")
    page.page.locator(".sentence").nth(1).click()
    page.page.wait_for_selector("#alternatives li.active")
    options = page.page.locator("#alternatives [role=option]")
    assert options.all_inner_texts() == [f"ANOTHER. AND{'!' * number}" for number in range(5)]
    assert page.page.locator(".sentence").nth(1).get_attribute("aria-expanded") == "true"
    options.nth(2).click()
    assert page.translation == "ONE. FIRST THE ANOTHER. AND!!"
    assert page.page.locator("#alternatives").is_hidden()
    page.type(" More of it.")
    page.wait_for_translation("ONE. FIRST THE ANOTHER. AND IT. OF MORE")  # it is another text now
    page.page.locator(".sentence").first.click()
    page.page.wait_for_selector("#alternatives li.active")
    page.page.locator("footer").click()
    assert page.page.locator("#alternatives").is_hidden(), "a click elsewhere closes it"


def test_alternatives_by_keyboard(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.type("The first one. And another.\nThird.")
    page.wait_for_translation("ONE. FIRST THE ANOTHER. AND\nTHIRD.")
    for _ in range(3):  # the file, clear, the translation
        page.page.keyboard.press("Tab")
    focused = "document.activeElement.innerText"
    assert page.page.evaluate(focused) == "ONE. FIRST THE"
    page.page.keyboard.press("ArrowDown")
    assert page.page.evaluate(focused) == "ANOTHER. AND"
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#alternatives li.active")
    assert page.focused == "alternatives"
    page.page.keyboard.press("ArrowDown")
    active = page.page.locator("#alternatives").get_attribute("aria-activedescendant")
    assert page.page.locator(f"#{active}").inner_text() == "ANOTHER. AND!"
    page.page.keyboard.press("Escape")
    assert page.page.locator("#alternatives").is_hidden() and page.page.evaluate(focused) == "ANOTHER. AND"
    assert "!" not in page.translation
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#alternatives li.active")
    page.page.keyboard.press("End")
    page.page.keyboard.press("Enter")
    page.wait_for_translation("ONE. FIRST THE ANOTHER. AND!!!!\nTHIRD.")
    assert page.page.evaluate(focused) == "ANOTHER. AND!!!!", "one goes on where one was"
    page.page.keyboard.press("Tab")
    assert page.focused == "copy", "the whole translation is one stop"


def test_a_word_and_its_partners_are_marked_in_both_panes(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.type("Nothing here.\nThe really old house. The  new house")
    page.wait_for("#target", "HOUSE NEW THE")
    page.page.locator("#target .word", has_text="OLD").hover()
    page.page.wait_for_selector("#target .marked")
    assert page.marked("#target") == ["OLD"] and page.marked("#backdrop") == ["old"]
    box = page.page.locator("#backdrop .word", has_text="new").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.wait_for_function("() => document.querySelector('#target .marked')?.innerText === 'NEW'")
    assert page.marked("#backdrop") == ["new"] and page.marked("#target") == ["NEW"]
    page.page.mouse.move(5, 5)
    page.page.wait_for_function("() => !document.querySelector('.marked')")
    page.page.locator("#source").focus()
    page.page.keyboard.press("Control+End")
    page.page.keyboard.press("ArrowLeft")
    assert page.marked("#backdrop") == ["house"] and page.marked("#target") == ["HOUSE"]
    page.page.locator("#target [tabindex='0']").focus()
    page.page.keyboard.press("ArrowRight")
    assert page.marked("#target") == ["HERE."] and page.marked("#backdrop") == ["here."]
    assert page.status == "“HERE.” comes from “here.”.", "and it is said"


def test_after_another_translation_its_sentence_is_marked_as_a_whole(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de/one%20two.%20Three%20four")
    page.wait_for_translation("TWO. ONE FOUR THREE")
    page.page.locator(".sentence").first.click()
    page.page.locator("#alternatives li").nth(1).click()
    page.wait_for_translation("TWO. ONE! FOUR THREE")
    page.page.mouse.move(5, 5)
    page.page.locator("#target .word").first.hover()
    page.page.wait_for_selector("#backdrop .marked")
    assert page.marked("#target") == ["TWO.", "ONE!"] and page.marked("#backdrop") == ["one", "two."]


@pytest.mark.parametrize("width", [1280, 360])
def test_marks_lie_exactly_below_the_words_of_the_source(shouting, open_translation, width):
    page = open_translation(f"{shouting.address}#en/de", width=width)
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung"
    lines = ["Some  words to wrap around. " * 3, "", f"a {long} b", "\tTabs\tand   blanks  ", "שלום עולם hello", "end"]
    page.page.fill("#source", "\n".join(lines))
    page.wait_for("#target", "END")
    seen = page.page.evaluate("""() => [...document.querySelectorAll("#backdrop .word")].map((word) => {
        word.scrollIntoView({ block: "center" });
        const { left, top, width, height } = word.getClientRects()[0];
        const at = document.caretPositionFromPoint(left + width / 2, top + height / 2);
        const text = document.querySelector("#source").value;
        const start = text.slice(0, at.offset).search(/\\S*$/);
        return [word.textContent, /\\S*/.exec(text.slice(start))[0], at.offsetNode.id];
    })""")
    assert len(seen) > 20
    assert [(word, "source") for word, _, _ in seen] == [(found, where) for _, found, where in seen]


def test_the_source_grows_with_its_text(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    page.page.fill("#source", "line\n" * 60)
    assert page.page.locator("#source").evaluate("field => field.scrollHeight - field.clientHeight") <= 1


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


def test_an_error_is_told_in_a_sentence_and_forgotten(shouting, open_translation):
    def fail(sentences):
        if "break" in sentences:
            raise RuntimeError("broken")

    shouting.before = fail
    page = open_translation(f"{shouting.address}#en/de", allowed=REFUSED)
    page.type("break")
    page.wait_for("#status", "The server failed at this; its log says more.")
    assert page.page.locator("#status").get_attribute("data-kind") == "error"
    page.type(" not")
    page.wait_for_translation("NOT BREAK")
    page.wait_for("#status", "Translated")
    assert page.page.locator("#status").get_attribute("data-kind") == ""


def test_who_asks_too_often_is_asked_to_wait_and_then_served(open_translation):
    with shouting_server(rate=RateLimit(Rate(1, 2.0))) as shouting:
        page = open_translation(f"{shouting.address}#en/de", allowed=REFUSED)
        page.type("one")
        page.wait_for_translation("ONE")
        page.type(" two")
        page.wait_for("#status", "The server is busy; trying again in")
        start = time.monotonic()
        assert page.page.locator("#status").get_attribute("data-kind") == "", "that is no error"
        page.type(" three")  # meanwhile the text changes: nobody is asked before it is time
        page.wait_for_translation("THREE TWO ONE")
        assert time.monotonic() - start > 0.6
        assert len(page.asked) <= 4


def test_a_server_that_cannot_be_reached_is_waited_for(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de", allowed=REFUSED)
    page.page.context.set_offline(True)
    page.type("hello there")
    page.wait_for("#status", "The server cannot be reached; trying again in 3 s.")
    page.page.context.set_offline(False)
    page.wait_for_translation("THERE HELLO")


def test_a_key_is_asked_for_and_kept_for_the_tab(open_translation):
    with shouting_server(keys=Keys(["alpha"])) as shouting:
        page = open_translation(f"{shouting.address}#en/de", allowed=REFUSED)
        page.page.get_by_label("API key").wait_for()
        page.type("hello there")
        page.wait_for("#status", "Enter the API key above")
        assert page.asked == []
        page.page.get_by_label("API key").fill("beta")
        page.page.keyboard.press("Enter")
        page.wait_for("#status", "The server does not accept this API key.")
        page.page.get_by_label("API key").fill("alpha")
        page.page.get_by_role("button", name="Use this key").click()
        page.wait_for_translation("THERE HELLO")
        assert page.page.locator("#key-form").is_hidden()
        page.page.wait_for_url("**/#en/de/hello%20there")
        page.page.reload()
        page.wait_for_translation("THERE HELLO")
        assert page.page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 1]


def test_too_long_a_text_is_not_sent(open_translation):
    with shouting_server(Limits(max_characters=20)) as shouting:
        page = open_translation(f"{shouting.address}#en/de")
        page.page.fill("#source", "😀" * 18 + " a")
        page.wait_for("#target", "A")
        assert page.page.locator("#count").inner_text() == "20 / 20", "counted as the server counts"
        page.type("bc")
        page.wait_for("#status", "more than the 20 characters")
        assert page.page.locator("#count").get_attribute("class") == "over"
        page.page.wait_for_timeout(500)
        assert len(page.asked) == 1


def test_a_long_text_stays_quick_and_only_what_is_new_is_asked_for(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de")
    line = "This is one of very many sentences of a text that is really long, number {}."
    text = "\n".join(line.format(number) for number in range(660))
    assert len(text) > 50_000
    page.page.fill("#source", text)
    page.wait_for("#target", "659. NUMBER")
    page.wait_for("#status", "Translated")
    assert sum(len(sent) for asked in page.asked for sent in asked["q"]) == len(text) - 659
    assert all(sum(map(len, asked["q"])) <= 5000 for asked in page.asked)
    page.asked.clear()
    page.page.evaluate("""() => {
        const source = document.querySelector("#source");
        source.setSelectionRange(0, 0);
        source.addEventListener("beforeinput", () => { window.began = performance.now(); });
        const note = () => { window.took = performance.now() - window.began; };
        source.addEventListener("input", () => requestAnimationFrame(() => setTimeout(note)));
    }""")
    page.page.keyboard.type("W")
    page.wait_for("#target", "WTHIS")
    assert page.page.evaluate("window.took") < 1000, "milliseconds until a letter is drawn"
    assert [asked["q"] for asked in page.asked] == [["W" + line.format(0)]]


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_dark_and_light(shouting, open_translation, scheme, other):
    page = open_translation(shouting.address, color_scheme=scheme)

    def seen() -> str:
        colour = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return "dark" if sum(map(int, re.findall(r"\d+", colour)[:3])) < 200 else "light"

    assert seen() == scheme
    page.page.click("#theme")
    assert seen() == other
    page.page.reload()
    assert seen() == other, "the choice is kept"


def test_a_phone(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de", width=360, height=740)
    page.page.fill("#source", "A" * 200 + " word after word " * 20)
    page.wait_for("#target", "WORD")
    fits = "document.documentElement.scrollWidth"
    assert page.page.evaluate(fits) == 360
    source, target = (page.page.locator(f"#{name}-pane").bounding_box() for name in ("source", "target"))
    assert target["y"] >= source["y"] + source["height"] - 1, "one below the other"
    page.page.locator(".sentence").first.click()
    page.page.wait_for_selector("#alternatives li.active")
    assert page.page.evaluate(fits) == 360
    controls = page.page.locator("button:visible, select:visible, #alternatives li:visible, a.filled:visible")
    boxes = [control.bounding_box() for control in controls.all()]
    assert len(boxes) > 8 and all(min(box["width"], box["height"]) >= 40 for box in boxes)
    page.page.keyboard.press("Escape")
    page.drop("a-file-with-quite-a-long-name-" * 3 + ".md", "word " * 200)
    page.page.wait_for_selector("#document-download")
    assert page.page.evaluate(fits) == 360


def test_names_languages_and_order_for_who_does_not_see_or_point(shouting, open_translation):
    page = open_translation(f"{shouting.address}#en/de/Hello%20there")
    page.wait_for_translation("THERE HELLO")
    nameless = page.page.evaluate("""() => {
        const controls = "button, select, input, textarea, a, progress, [role]:not([role=status])";
        const nameOf = (it) => it.getAttribute("aria-label") || it.labels?.[0]?.textContent || it.textContent.trim();
        return [...document.querySelectorAll(controls)].filter((it) => !nameOf(it)).map((it) => it.outerHTML);
    }""")
    assert nameless == []
    assert page.page.evaluate("document.documentElement.lang") == "en"
    assert page.page.locator("#status").get_attribute("aria-live") == "polite"
    assert page.page.locator("h1").count() == 1 and page.page.locator("main").count() == 1
    page.page.locator("#theme").focus()
    order = [page.focused]
    for _ in range(9):
        page.page.keyboard.press("Tab")
        order.append(page.focused)
        outline = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.focused in ("source", ""), f"{page.focused} shows no focus"
    stops = "theme source-language swap target-language source choose-file clear sentence copy "
    assert " ".join(order) == stops
    page.page.locator("#source").focus()
    shadow = "getComputedStyle(document.querySelector('#source')).boxShadow"
    assert page.page.evaluate(shadow) != "none", "a text shows its focus in its own way"


def test_who_wants_no_motion_gets_none(shouting, open_translation):
    shouting.before = lambda sentences: time.sleep(1)
    page = open_translation(f"{shouting.address}#en/de/slow", reduced_motion="reduce")
    page.page.wait_for_selector("#busy:not([hidden])")
    assert page.page.evaluate("getComputedStyle(document.querySelector('#busy'), '::before').animationName") == "none"


def test_the_line_below_says_what_answers(shouting, open_translation):
    page = open_translation(shouting.address, allowed=REFUSED)  # a document has no icon
    said = page.page.locator("footer").inner_text()
    assert "English → German" in said and "not stored" in said
    with page.page.expect_response("**/openapi.json") as coming:
        page.page.locator("footer a").click()
    assert json.loads(coming.value.body())["info"]["title"] == "Dragoman"


def test_with_a_real_model(phrasebook_data, tmp_path, open_translation):
    from dragoman.web.serve.models import open_models
    from dragoman.web.serve.service import Service
    from small_exports import write_export
    from small_runs import train_here

    settings = ("train.max_steps=3", "evaluate.every_steps=3", "checkpoint.every_steps=3")
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
    models = open_models([str(write_export(tmp_path / "run", tmp_path / "export"))], Limits())
    with serving(Service(models)) as address:
        page = open_translation(f"{address}#en/de")
        page.type("The child reads a letter.")
        page.wait_for("#status", "Translated in")
        assert page.translation
        page.page.locator(".sentence").first.click()
        page.page.wait_for_selector("#alternatives li")
