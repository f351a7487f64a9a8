"""The translation page for everybody: when the server is in trouble, in the dark, on a phone, by ear."""

import json
import re
import time

import pytest

from dragoman.web.serve.keys import Keys
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.rate import Rate, RateLimit
from shouting_server import shouting_server

REFUSED = "Failed to load resource"  # what a browser writes of any answer but 200


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
