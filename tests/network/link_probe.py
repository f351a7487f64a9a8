"""Measures a link from inside: a program that the tests run on the hosts. Standard library only.

serve PORT                    answers both kinds of calls below
rate ADDRESS PORT SECONDS     megabits per second that arrived there
round-trip ADDRESS PORT       shortest milliseconds there and back: what else runs on the machine only adds to it
"""

import socket
import sys
import threading
import time


def serve(port: int) -> None:
    threading.Thread(target=echo, args=[port], daemon=True).start()
    with socket.create_server(("", port)) as listener:
        print("ready", flush=True)
        while True:
            threading.Thread(target=count, args=[listener.accept()[0]], daemon=True).start()


def echo(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("", port))
        while True:
            data, sender = here.recvfrom(64)
            here.sendto(data, sender)


def count(connection: socket.socket) -> None:
    """From the first byte to the last."""
    with connection:
        num_bytes = len(connection.recv(1 << 20))
        start = time.monotonic()
        while data := connection.recv(1 << 20):
            num_bytes += len(data)
        connection.sendall(f"{num_bytes * 8 / (time.monotonic() - start) / 1e6}".encode())


def rate(address: str, port: int, seconds: float) -> None:
    with socket.create_connection((address, port), timeout=10) as connection:
        block, end = bytes(1 << 17), time.monotonic() + seconds
        while time.monotonic() < end:
            connection.sendall(block)
        connection.shutdown(socket.SHUT_WR)
        print(connection.recv(64).decode())


def round_trip(address: str, port: int) -> None:
    taken = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.settimeout(5)
        for _ in range(21):
            start = time.monotonic()
            here.sendto(b"x", (address, port))
            here.recvfrom(64)
            taken.append((time.monotonic() - start) * 1000)
    print(min(taken))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port]:
            serve(int(port))
        case ["rate", address, port, seconds]:
            rate(address, int(port), float(seconds))
        case ["round-trip", address, port]:
            round_trip(address, int(port))
