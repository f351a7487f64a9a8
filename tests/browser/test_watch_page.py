"""The live page in a real browser: drawn, updated without reload, narrow, by keyboard, with a token."""

import re

import pytest

from growing_run import GrowingRun

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def run(tmp_path):
    grown = GrowingRun(tmp_path / "run", name=f"mine {EVIL}")
    grown.steps(30)
    grown.samples(4)
    return grown


def wait_for_text(page, selector, text):
    page.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", arg=[selector, text]
    )


def tile(page, key):
    return page.locator(f'#tiles [data-key="{key}"] .value').text_content()


def test_a_run_from_before_its_start_to_its_end(open_page, serve, tmp_path):
    page = open_page(serve("watch", tmp_path / "run"))
    wait_for_text(page, "#badge", "Waiting")
    run = GrowingRun(tmp_path / "run", name=f"mine {EVIL}")
    run.folder.log_path.write_text("measuring the link\n")
    run.samples(1)
    wait_for_text(page, "#badge", "Starting")
    wait_for_text(page, "#sentence", "measuring the link")
    run.steps(30)
    run.samples(4)
    wait_for_text(page, "#badge", "Running")
    wait_for_text(page, "#step", "Step 30 of 1,000")
    assert page.locator("#run").text_content() == f"mine {EVIL}"
    assert tile(page, "step-time") == "0.5 s/step" and tile(page, "link") == "9 MB/s"
    assert page.locator("#charts svg").count() == 3
    path = page.locator("#live-loss .line").get_attribute("d")
    run.steps(5, loss=1.5)
    run.evaluate(2.5, bleu=11.0)
    run.event("finding", code="network-bound", text=f"{EVIL} waits")
    wait_for_text(page, "#step", "Step 35 of 1,000")
    assert tile(page, "loss") == "1.500" and tile(page, "dev") == "2.500"
    assert f"{EVIL} waits" in page.locator("#latest li").text_content()
    assert page.locator("#live-loss .line").get_attribute("d") != path, "the curve went on"
    assert page.locator("#bar").get_attribute("aria-valuenow") == "4"
    assert page.locator("img").count() == 0, "what a run says is text"
    page.wait_for_selector("#report #question-11")
    assert page.locator("#report svg").count() > 3
    run.event("finished", reason="max_steps")
    wait_for_text(page, "#badge", "Finished")
    wait_for_text(page, "#report .lead", "Finished")
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1, "never loaded again"


def test_keyboard_and_what_a_newer_report_keeps(open_page, serve, run):
    page = open_page(serve("watch", run.folder.path))
    page.wait_for_selector("#report #recipe details")
    assert page.locator("#report").get_attribute("data-number") == "1"
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName + (document.activeElement.hash ?? '')"))
    assert "A#answers" in reached and "A#provenance" in reached and "SUMMARY" in reached
    summary = page.locator("#recipe summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#recipe details").get_attribute("open") is not None
    page.evaluate("document.querySelector('#recipe').scrollIntoView({behavior: 'instant'})")
    before = summary.bounding_box()["y"]
    page.evaluate("document.querySelector('#recipe').dataset.old = 'yes'")
    run.steps(5)
    run.event("finished", reason="max_steps")  # the end is drawn at once
    page.wait_for_selector('#report[data-number="2"]')
    assert page.locator("#recipe").get_attribute("data-old") is None, "another one stands there"
    assert page.locator("#recipe details").get_attribute("open") is not None
    assert page.evaluate("document.activeElement === document.querySelector('#recipe summary')")
    assert page.locator("#recipe summary").bounding_box()["y"] == pytest.approx(before, abs=2)


def test_a_narrow_window(open_page, serve, run):
    page = open_page(serve("watch", run.folder.path), width=390, height=844)
    page.wait_for_selector("#report #question-11")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#charts svg").count() == 3
    for box in [figure.bounding_box() for figure in page.locator("#charts figure").all()]:
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_bound_elsewhere_a_token_opens_it_once_and_for_all(open_page, serve, run, browser):
    address = serve("watch", run.folder.path, "--host", "0.0.0.0")
    port, query = re.search(r":(\d+)/(\?token=.*)", address).groups()
    stranger = browser.new_page()
    assert stranger.goto(f"http://127.0.0.1:{port}/").status == 403
    stranger.close()
    page = open_page(f"http://127.0.0.1:{port}/{query}")
    wait_for_text(page, "#step", "Step 30")
    assert page.url == f"http://127.0.0.1:{port}/", "no token is left in the address"
    page.reload()
    wait_for_text(page, "#step", "Step 30")
