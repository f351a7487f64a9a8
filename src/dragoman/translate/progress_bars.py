"""Keeps the progress bars of `transformers` off the terminal: ours are there, and scripts want none."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_progress_bars() -> Generator[None]:
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()
