"""Serves the live page until Ctrl-C. Knows sockets and signals; what is served is the app's."""

import gc
import signal
from collections.abc import Callable

import uvicorn

from dragoman.web.listening import address, is_loopback, listen
from dragoman.web.watch.app import make_app, make_token
from dragoman.web.watch.drawing import Drawer
from dragoman.web.watch.place import Place
from dragoman.web.watch.snapshot import Looker

END_SECONDS = 2


def serve(place: Place, host: str, port: int, say: Callable[[str], None]) -> None:
    """`say` gets the address to open, once everything is ready. Returns after Ctrl-C or SIGTERM."""
    listening = listen(host, port)
    token = None if is_loopback(host) else make_token()
    looker, drawer = Looker(place), Drawer(place.folder.path)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when it has ended
    config = uvicorn.Config(
        make_app(looker, drawer, token),
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=END_SECONDS,
    )
    try:
        gc.freeze()  # what was imported stays: looking through it again and again would be half of the work
        say(address(listening, host, token))
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # the usual end of a page
    finally:
        listening.close()
        drawer.close()
        looker.close()
