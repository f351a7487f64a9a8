"""What people feed to `translate`."""

import io

import pytest

from dragoman.commands.translate import _decoded
from dragoman.data.corpus import MAX_LINE_BYTES
from dragoman.errors import DragomanError


def test_damaged_input_is_one_line_or_translations(tried):
    tried("translate", 200)


def test_a_file_without_line_ends_is_not_read_into_memory():
    class Endless(io.RawIOBase):
        num_read = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.num_read += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    endless = Endless()
    with pytest.raises(DragomanError, match="line 1: longer than"):
        list(_decoded(io.BufferedReader(endless), None))
    assert endless.num_read < 2 * MAX_LINE_BYTES
