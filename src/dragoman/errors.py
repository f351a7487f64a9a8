"""The one error type that reaches a user: what is wrong, and what to do about it.

DragomanError                exit code 2: the user can mend it
└── CheckFailed              exit code 1: a check that was asked for said no
"""


class DragomanError(Exception):
    """A mistake the user can mend. The command line prints two lines and never a traceback."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = _printable(message)
        self.hint = _printable(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


def _printable(text: str) -> str:
    """Messages quote files: what would steer a terminal, or cannot be written to one, becomes a question mark."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in text)


class CheckFailed(DragomanError):
    """A check that was asked for (``--fail-if-worse`` and the like) said no."""

    exit_code = 1
