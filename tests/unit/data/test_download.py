import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dragoman.data import download as download_module
from dragoman.data.download import Remote, download
from dragoman.errors import DragomanError

BODY = bytes(range(256)) * 4_000
SHA256 = hashlib.sha256(BODY).hexdigest()

Answer = Callable[[BaseHTTPRequestHandler, int], None]


class Server:
    """Answers the n-th request by the n-th answer, the last one for ever."""

    def __init__(self, answers: list[Answer]) -> None:
        self.ranges: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number = len(server.ranges)
                server.ranges.append(self.headers.get("Range"))
                start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
                answers[min(number, len(answers) - 1)](self, start)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/corpus.tgz"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def answer(body: bytes = BODY, status: int | None = None, cut_after: int | None = None, ranges: bool = True) -> Answer:
    def send(handler: BaseHTTPRequestHandler, start: int) -> None:
        first = start if ranges else 0
        handler.send_response(status or (206 if first else 200))
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        handler.send_header("Content-Length", str(len(body) - first))
        handler.end_headers()
        handler.wfile.write(body[first:][:cut_after])
        handler.close_connection = True

    return send


@contextmanager
def serve(*answers: Answer) -> Iterator[Server]:
    with Server(list(answers)) as server:
        yield server


class Pauses:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def fetch(
    server: Server, path: Path, known: bool = True, pauses: Pauses | None = None
) -> list[tuple[str, float, float]]:
    shown: list[tuple[str, float, float]] = []
    remote = Remote(server.url, len(BODY), SHA256) if known else Remote(server.url)
    download(remote, path, lambda *step: shown.append(step), pauses or Pauses())
    return shown


def test_a_plain_download(tmp_path: Path):
    path = tmp_path / "deep" / "corpus.tgz"
    with serve(answer()) as server:
        shown = fetch(server, path)
        assert path.read_bytes() == BODY
        assert shown[-1] == ("fetching corpus.tgz", len(BODY), len(BODY))
        fetch(server, path)
        assert len(server.ranges) == 1, "a file that is there is not fetched again"
    assert list(path.parent.iterdir()) == [path]


def test_a_broken_transfer_goes_on_where_it_was(tmp_path: Path):
    pauses = Pauses()
    with serve(answer(cut_after=300_000), answer(status=503), answer(cut_after=200_000), answer()) as server:
        fetch(server, tmp_path / "a", pauses=pauses)
    assert (tmp_path / "a").read_bytes() == BODY
    assert server.ranges == [None, "bytes=300000-", "bytes=300000-", "bytes=500000-"]
    assert pauses.seconds == [1.0, 2.0, 1.0], "longer pauses, until bytes come again"


def test_an_interrupted_command_goes_on_too(tmp_path: Path):
    (tmp_path / "a.part").write_bytes(BODY[:1_000])
    with serve(answer()) as server:
        fetch(server, tmp_path / "a")
    assert server.ranges == ["bytes=1000-"]
    assert (tmp_path / "a").read_bytes() == BODY


def test_a_server_that_cannot_resume(tmp_path: Path):
    with serve(answer(cut_after=300_000), answer(ranges=False)) as server:
        fetch(server, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == BODY
    assert len(server.ranges) == 2


def test_wrong_bytes_are_fetched_once_more_then_refused(tmp_path: Path):
    wrong = b"x" * len(BODY)
    with serve(answer(wrong), answer()) as server:
        fetch(server, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == BODY
    with serve(answer(wrong)) as server, pytest.raises(DragomanError, match="gives wrong bytes: sha256"):
        fetch(server, tmp_path / "b")
    assert len(server.ranges) == 2
    assert not list(tmp_path.glob("b*"))


def test_a_damaged_beginning_is_found(tmp_path: Path):
    (tmp_path / "a.part").write_bytes(b"x" * 1_000)
    with serve(answer()) as server:
        fetch(server, tmp_path / "a")
    assert server.ranges == ["bytes=1000-", None]
    assert (tmp_path / "a").read_bytes() == BODY


def test_a_file_of_the_wrong_size(tmp_path: Path):
    with serve(answer(BODY[:-1])) as server, pytest.raises(DragomanError, match=r"bytes instead of 1,024,000"):
        fetch(server, tmp_path / "a")


def test_without_a_known_size_the_server_is_held_to_its_word(tmp_path: Path):
    with serve(answer(cut_after=300_000), answer()) as server:
        fetch(server, tmp_path / "a", known=False)
    assert (tmp_path / "a").read_bytes() == BODY


def test_patience_ends(tmp_path: Path):
    pauses = Pauses()
    with (
        serve(answer(status=500)) as server,
        pytest.raises(DragomanError, match="could not be fetched: HTTP status 500"),
    ):
        fetch(server, tmp_path / "a", pauses=pauses)
    assert pauses.seconds == [1.0, 2.0, 4.0, 8.0]


def test_missing_files_are_not_asked_for_again(tmp_path: Path):
    with serve(answer(status=404)) as server, pytest.raises(DragomanError, match="HTTP status 404"):
        fetch(server, tmp_path / "a")
    assert len(server.ranges) == 1


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with serve(answer()) as server:
        pass
    monkeypatch.setattr(download_module, "MAX_FAILURES", 2)
    with pytest.raises(DragomanError, match=r"could not be fetched: .*refused"):
        fetch(server, tmp_path / "a")
