"""Serves translations until SIGTERM or Ctrl-C. Knows sockets and signals; what is served is the app's."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType

import uvicorn

from dragoman.web.listening import address
from dragoman.web.serve.app import make_app
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.protocol import protocol_class
from dragoman.web.serve.service import Service

SPARE_FILES = 100  # what is open beside connections


def serve(
    service: Service, listening: socket.socket, host: str, cors: Sequence[str], say: Callable[[str], None]
) -> None:
    """`say` gets the address, once everything is ready. Returns when all is answered, or time is up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when it has ended
    limits = with_files(service.limits)
    config = uvicorn.Config(
        make_app(service, cors),
        http=protocol_class(limits),
        ws="none",
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=limits.keep_alive_seconds,
        timeout_graceful_shutdown=round(limits.end_seconds) + 2,
    )
    try:
        gc.freeze()  # what was imported stays: no need to look through it again and again
        say(address(listening, host, None))
        _Server(config, service).run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # the usual end
    finally:
        listening.close()
        if not service.close():
            # Python would tear down what a thread of the engine still uses, and crash instead of ending.
            sys.stdout.flush()
            os._exit(0)


def with_files(limits: Limits) -> Limits:
    """No more connections than files may be open, of which there may be more than at first."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return replace(limits, max_connections=max(1, min(limits.max_connections, most - SPARE_FILES)))


class _Server(uvicorn.Server):
    """Answers what it has before it ends, and tells the rest."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.is_ending = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(self._service.limits.end_seconds, self._service.abandon)
        await super().shutdown(sockets)
