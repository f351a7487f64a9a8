"""Serves the live page until Ctrl-C. Knows sockets and signals; what is served is the app's."""

import errno
import gc
import signal
import socket
from collections.abc import Callable

import uvicorn

from dragoman.errors import DragomanError
from dragoman.web.watch.app import is_loopback, make_app, make_token
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


def listen(host: str, port: int) -> socket.socket:
    """Bound before anything is said, so that the address that is printed works."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except socket.gaierror:
        raise DragomanError(f"--host {host}: there is no such address", "name an address of this machine") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            hint = "another page may be open there; --port 0 takes a free one"
            raise DragomanError(f"port {port} is taken", hint) from None
        raise DragomanError(
            f"cannot listen on {host} port {port}: {error.strerror}", "name another --host or --port"
        ) from None


def address(listening: socket.socket, host: str, token: str | None) -> str:
    """What to open in a browser. An address for all cards is given by this machine's name."""
    port = listening.getsockname()[1]
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
