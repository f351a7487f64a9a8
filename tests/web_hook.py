"""A web address of this machine that keeps what it is sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class WebHook:
    """`status` is what it answers; it does not answer before `is_open` is set."""

    def __init__(self) -> None:
        self.status = 200
        self.is_open = threading.Event()
        self.is_open.set()
        self.messages: list[dict[str, Any]] = []
        self.paths: list[str] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.is_open.wait(20)
                hook.paths.append(self.path)
                hook.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                assert self.headers["Content-Type"] == "application/json"
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/services/SECRET?key=HIDDEN"

    @property
    def events(self) -> list[str]:
        return [message["event"] for message in self.messages]


@contextmanager
def web_hook() -> Iterator[WebHook]:
    hook = WebHook()
    thread = threading.Thread(target=hook.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.is_open.set()
        hook.server.shutdown()
        thread.join()
        hook.server.server_close()
