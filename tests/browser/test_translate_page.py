"""The translation page in a real browser, against the real service with a translator that shouts backwards."""

import time

import pytest

from dragoman.web.serve.limits import Limits
from shouting_server import serving, shout

EVIL = "<img src=x onerror=alert(1)>"


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
