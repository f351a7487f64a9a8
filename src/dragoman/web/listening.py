"""Where a page listens, and what its address is. Knows sockets only."""

import errno
import ipaddress
import socket

from dragoman.errors import DragomanError


def listen(host: str, port: int) -> socket.socket:
    """Bound before anything is said, so that the address that is printed works."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family)
        # Connections inherit it. Without it the second packet of an answer waits 40 ms for the first to be confirmed.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
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


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
