"""How much a server takes on, and for how long. Everything that a stranger could make grow has its bound here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The defaults suit a machine with two cores; `dragoman serve --help` names those that can be changed."""

    max_queue: int = 2_000  # sentences of one model that wait
    max_characters: int = 100_000  # of all texts of a request
    max_texts: int = 1_000  # of a request
    max_alternatives: int = 10
    timeout_seconds: float = 30.0  # for a request, once it is read
    read_seconds: float = 10.0  # for the head of a request, its body, and an answer that the client does not take
    keep_alive_seconds: int = 30
    end_seconds: float = 10.0  # for what is still being translated when the server ends
    max_connections: int = 1_000

    @property
    def max_body_bytes(self) -> int:
        """JSON and forms may write one character as twelve bytes."""
        return 12 * self.max_characters + 65_536

    @property
    def max_waiting_characters(self) -> int:
        return 20 * self.max_characters
