"""The real service on a loopback port, with a translator whose answers can be foreseen.

From English to German it shouts, turns the order of words around and leaves out `really`; from German to English it
whispers.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from dragoman.translate.translator import Hypothesis
from dragoman.web.listening import listen
from dragoman.web.serve.app import make_app
from dragoman.web.serve.batcher import Batcher, Best, Wanted
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.models import Model
from dragoman.web.serve.service import Service

MARK = re.compile(r"<x\d+>", re.IGNORECASE)
PAIRS = (("en", "de"), ("de", "en"), ("en", "fr"))


def shout(sentence: str, number: int = 0) -> Hypothesis:
    """`number` counts the alternatives: every one is a little louder."""
    words = MARK.sub(lambda mark: mark.group().lower(), sentence.upper()).split()
    if MARK.search(sentence):  # turned around, tags would end before they begin
        return Hypothesis(" ".join(words), 0.0, ())
    said = [(place, word) for place, word in enumerate(words) if word != "REALLY"][::-1]
    pairs = tuple((source, target) for target, (source, _) in enumerate(said))
    return Hypothesis(" ".join(word for _, word in said) + "!" * number, 0.0, pairs)


def whisper(sentence: str, number: int = 0) -> Hypothesis:
    words = sentence.lower().split()
    return Hypothesis(" ".join(words) + "?" * number, 0.0, tuple((place, place) for place in range(len(words))))


@dataclass
class Shouting:
    """What a test may look at and change while the server runs."""

    address: str = ""
    batches: list[list[str]] = field(default_factory=list[list[str]])
    # Called before a batch is answered: to be late, or to fail.
    before: Callable[[list[str]], None] = lambda sentences: None

    def translate(self, languages: tuple[str, str], sentences: list[str], wanted: Wanted) -> list[Best]:
        self.batches.append(sentences)
        self.before(sentences)
        speak = shout if languages[0] == "en" else whisper
        return [[speak(sentence, number) for number in range(wanted.num_best)] for sentence in sentences]


@contextmanager
def shouting_server(limits: Limits | None = None, **options: Any) -> Iterator[Shouting]:
    """`options` are those of Service."""
    shouting, limits = Shouting(), limits or Limits()

    def model(languages: tuple[str, str]) -> Model:
        def translate(sentences: list[str], wanted: Wanted) -> list[Best]:
            return shouting.translate(languages, sentences, wanted)

        return Model(languages, Batcher(translate, limits))

    service = Service({languages: model(languages) for languages in PAIRS}, limits, **options)
    with serving(service) as shouting.address:
        yield shouting


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """The address of its page."""
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)
        service.close()
        listening.close()
