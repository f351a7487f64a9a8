"""The API in this process, with a stand-in for the model: answers, errors, limits, headers."""

import json
import threading
import time

import pytest
from starlette.testclient import TestClient

from dragoman.web.serve import access
from dragoman.web.serve.app import make_app
from dragoman.web.serve.keys import Keys
from dragoman.web.serve.rate import Rate, RateLimit

ASKED = {"q": "hello there", "source": "en", "target": "de"}


@pytest.fixture
def lines(monkeypatch):
    """What was logged."""
    found = []
    monkeypatch.setattr(access, "write_line", found.append)
    return found


@pytest.fixture
def make_client(make_service, lines):
    clients = []

    def make(cors=(), **options):
        clients.append(TestClient(make_app(make_service(**options), cors), raise_server_exceptions=False))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(make_client):
    return make_client(pairs=(("en", "de"), ("de", "en"), ("fr", "en")))


def ask(client, **changes):
    return client.post("/translate", json={**ASKED, **changes})


def test_a_text_a_list_and_a_form(client):
    assert ask(client).json() == {"translatedText": "HELLO THERE"}
    assert ask(client, q=["one. Two.", "", "three"]).json() == {"translatedText": ["ONE. TWO.", "", "THREE"]}
    assert client.post("/translate", data=ASKED).json() == {"translatedText": "HELLO THERE"}
    assert client.post("/translate", data={**ASKED, "q": ["a", "b"]}).json() == {"translatedText": ["A", "B"]}
    assert client.post("/translate", params=ASKED).json() == {"translatedText": "HELLO THERE"}
    assert client.post("/translate", content=json.dumps(ASKED)).json() == {"translatedText": "HELLO THERE"}
    assert ask(client, q=[]).json() == {"translatedText": []}


def test_formats(client):
    assert ask(client, q="<p>a <b>big</b> x &amp; y</p><pre>as is</pre>", format="html").json() == {
        "translatedText": "<p>A <b>BIG</b> X &amp; Y</p><pre>as is</pre>"
    }
    assert ask(client, q="# one\n\n`code` two\n", format="markdown").json() == {
        "translatedText": "# ONE\n\n`code` TWO\n"
    }
    assert ask(client, q="a < b\n\n- c  d\r\n").json()["translatedText"] == "A < B\n\n- C  D\r\n"


def test_alternatives_and_alignments(client):
    answer = ask(client, q="ab. Cd ef.", alternatives=2, alignments=True).json()
    assert answer["alternatives"] == ["AB.' CD EF.'", "AB.'' CD EF.''"]
    assert answer["alignments"] == [
        [
            {"source": "ab.", "target": "AB.", "pairs": [[0, 0]]},
            {"source": "Cd ef.", "target": "CD EF.", "pairs": [[0, 0], [1, 1]]},
        ]
    ]
    assert ask(client, q=["a", "b"], alternatives=1).json()["alternatives"] == [["A'"], ["B'"]]


def test_alignments_count_the_words_that_a_reader_sees(client):
    answer = ask(client, q="<p>see <img src=x> the <b>red</b> house</p>", format="html", alignments=True).json()
    (sentence,) = answer["alignments"][0]
    assert sentence["source"] == "see the red house" and sentence["pairs"][-1] == [3, 3]


def test_the_language_is_told(client):
    english, german = "The weather is very nice today.", "Das Wetter ist heute sehr schön."
    answer = ask(client, q=english, source="auto").json()
    assert answer["detectedLanguage"]["language"] == "en" and 50 < answer["detectedLanguage"]["confidence"] <= 100
    both = ask(client, q=[english, german], source="auto").json()
    assert both["translatedText"] == [english.upper(), german], "what is in the language already stays"
    assert [each["language"] for each in both["detectedLanguage"]] == ["en", "de"]
    found = client.post("/detect", json={"q": "Où est la gare, s'il vous plaît ?"}).json()
    assert found[0]["language"] == "fr" and found[0]["confidence"] > found[1]["confidence"]
    refused = ask(client, q="Où est la gare, s'il vous plaît ?", source="auto")
    assert refused.status_code == 400 and "fr to de" in refused.json()["error"]


def test_the_language_cannot_be_told(make_client):
    client = make_client(pairs=(("xx", "yy"),))
    refused = client.post("/translate", json={"q": "a", "source": "auto", "target": "yy"})
    assert refused.status_code == 400 and "cannot be told" in refused.json()["error"]
    assert client.post("/detect", json={"q": "a"}).json() == []


def test_what_there_is(client):
    assert client.get("/languages").json()[1] == {"code": "en", "name": "English", "targets": ["de"]}
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 100_000 and settings["language"]["target"] == {"code": "de", "name": "German"}
    ask(client, q="one. Two.")
    counters = client.get("/metrics").text
    assert 'dragoman_sentences_total{pair="en-de"} 2.0' in counters
    assert 'dragoman_requests_total{path="/translate",status="200"} 1.0' in counters
    assert 'dragoman_queue_sentences{pair="en-de"} 0.0' in counters


BAD = {
    "q is missing": {"source": "en", "target": "de"},
    "q must be a text or a list of texts": {**ASKED, "q": 5},
    "target is missing": {"q": "a", "source": "en"},
    "source is no language of this server": {**ASKED, "source": "xx"},
    "target is no language of this server": {**ASKED, "target": "\x00"},
    "there is no model from fr to de": {**ASKED, "source": "fr"},
    "format must be text, html or markdown": {**ASKED, "format": "pdf"},
    "alternatives must be a number from 0": {**ASKED, "alternatives": -1},
    "there are at most 10 alternatives": {**ASKED, "alternatives": 11},
    "alignments must be true or false": {**ASKED, "alignments": "perhaps"},
    "the body must be a JSON object": [1],
}


@pytest.mark.parametrize("words", BAD)
def test_what_is_wrong_is_one_line(client, words):
    answer = client.post("/translate", json=BAD[words])
    assert answer.status_code == 400 and list(answer.json()) == ["error"]
    assert answer.json()["error"].startswith(words) and "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"q": "\xff", "source": "en", "target": "de"}',
        b'{"q": "\\ud800", "source": "en", "target": "de"}',
        b"[" * 100_000,
        b'{"q":' * 50_000,
    ],
)
def test_a_body_that_is_no_json(client, body):
    answer = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and "JSON" in answer.json()["error"]


@pytest.mark.parametrize("body", [b"q=%ff&source=en&target=de", b"q=\xff", b"q=%ED%A0%80", b"a=1&" * 5_000])
def test_a_form_that_is_none(client, body):
    answer = client.post("/translate", content=body, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 400 and "the form" in answer.json()["error"]


def test_other_kinds_of_body(client):
    answer = client.post("/translate", content=b"hello", headers={"content-type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 400 and "form" in answer.json()["error"]


@pytest.mark.parametrize(
    "text", ["a\x00b", "\x1b[31mred\x07", "\u202eabc\u202c", "שלום", "😀" * 50, "\ufffe\U0010ffff", " \n\t ", "⟦tag1⟧"]
)
def test_strange_signs_are_no_failure(client, text):
    answer = ask(client, q=text)
    assert answer.status_code == 200 and len(answer.json()["translatedText"]) >= len(text)


@pytest.mark.parametrize("text", ["<a ", "<![", "<!--", "<!", "</", '<a b="', "![", "[x](", "!. "])
@pytest.mark.parametrize("kind", ["text", "html", "markdown"])
def test_markup_that_is_made_to_take_long_does_not(client, text, kind):
    start = time.process_time()
    assert ask(client, q=(text * 40_000)[:40_000], format=kind).status_code == 200
    assert time.process_time() - start < 3, "some of these took a minute"


def test_other_paths_and_methods(client):
    for path in ("/nothing", "/translate/", "/docs", "/static/page.html", "/static/..%2Fapp.py", "/static/"):
        answer = client.get(path)
        assert answer.status_code == 404 and "error" in answer.json()
    answer = client.get("/translate")
    assert answer.status_code == 405 and answer.headers["allow"] == "POST" and "error" in answer.json()


def test_too_much_at_once(make_client):
    client = make_client(max_characters=20, max_texts=3, max_queue=4)
    assert ask(client, q="x" * 20).status_code == 200
    for q, words in (
        ("x" * 21, "characters"),
        (["a"] * 4, "texts"),
        ("a\n" * 5, "sentences"),
        ("x" * 70_000, "larger"),
    ):
        answer = ask(client, q=q)
        assert answer.status_code == 413 and words in answer.json()["error"]


def test_no_translation_in_time(make_client):
    may_go = threading.Event()
    client = make_client(translate=lambda *_: may_go.wait(10) and [], timeout_seconds=0.2)
    answer = ask(client)
    may_go.set()
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0 and "0.2 s" in answer.json()["error"]


def test_a_full_queue(make_client):
    may_go, entered = threading.Event(), threading.Semaphore(0)

    def held(sentences, wanted):
        entered.release()
        may_go.wait(10)
        return [[type("H", (), {"text": "x", "alignment": None})()] for _ in sentences]

    client = make_client(translate=held, max_queue=2)
    waiting = []
    for number in range(3):  # one is under way, two wait
        waiting.append(threading.Thread(target=ask, args=(client,)))
        waiting[-1].start()
        if number == 0:
            assert entered.acquire(timeout=10)
    end = time.monotonic() + 10
    while 'queue_sentences{pair="en-de"} 2.0' not in client.get("/metrics").text:
        assert time.monotonic() < end
    answer = ask(client)
    may_go.set()
    for thread in waiting:
        thread.join()
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0


def test_keys(make_client, lines):
    client = make_client(keys=Keys(["s3cret"]))
    assert ask(client).status_code == ask(client, api_key="wrong").status_code == 403
    assert client.post("/detect", json={"q": "secret text"}).status_code == 403
    assert ask(client, api_key="s3cret").json() == {"translatedText": "HELLO THERE"}
    assert client.get("/languages").status_code == client.get("/").status_code == 200
    assert client.get("/frontend/settings").json()["keyRequired"] is True
    assert "s3cret" not in str(lines) and "hello" not in str(lines) and "secret text" not in str(lines)


def test_rates(make_client):
    client = make_client(rate=RateLimit(Rate(2, 60.0)))
    assert [ask(client).status_code for _ in range(3)] == [200, 200, 429]
    assert client.get("/languages").status_code == 200


def test_an_engine_that_fails_is_told_without_details(make_client):
    def broken(sentences, wanted):
        raise RuntimeError("secret path")

    answer = ask(make_client(translate=broken))
    assert answer.status_code == 500 and "secret" not in answer.text and "error" in answer.json()


def test_a_server_that_ends(make_client, make_service):
    service = make_service()
    client = TestClient(make_app(service))
    service.is_ending = True
    for answer in (ask(client), client.post("/detect", json={"q": "a"}), client.get("/health")):
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0


def test_the_log(client, lines):
    ask(client, q="one. Two.")
    client.get("/nothing?q=secret")
    first, second = lines
    assert first | {"time": "", "milliseconds": 0} == {
        "time": "",
        "client": "testclient",
        "method": "POST",
        "path": "/translate",
        "status": 200,
        "milliseconds": 0,
        "characters": 9,
        "sentences": 2,
        "pair": "en-de",
    }
    assert first["milliseconds"] > 0 and second["status"] == 404 and "secret" not in str(second)


def test_pages_of_others(make_client):
    client = make_client(cors=["https://good.example"])
    for origin, allowed in (("https://good.example", "https://good.example"), ("https://evil.example", None)):
        answer = client.post("/translate", json=ASKED, headers={"origin": origin})
        assert answer.headers.get("access-control-allow-origin") == allowed
    assert "access-control-allow-origin" not in ask(make_client()).headers


def test_the_page_may_run_nothing_but_our_files(client):
    for path in ("/", "/nothing", "/languages"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
    assert client.get("/").headers["content-type"].startswith("text/html")


def test_the_openapi_document_names_every_error(client):
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/translate",
        "/detect",
        "/languages",
        "/frontend/settings",
        "/health",
        "/metrics",
    }
    responses = document["paths"]["/translate"]["post"]["responses"]
    assert set(responses) == {"200", "400", "403", "408", "413", "429", "503"}
    body = document["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert set(body["application/json"]["schema"]["required"]) == {"q", "source", "target"}
