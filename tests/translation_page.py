"""The translation page as a test uses it."""

from typing import Any

SHOWN = "[...document.querySelectorAll('#target .line')].map((line) => line.textContent).join('\\n')"


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
