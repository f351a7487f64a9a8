"""What was appended to a file of records since it was last looked at: whole lines, each once. Never writes."""

from pathlib import Path

BLOCK_BYTES = 1 << 24


class Tail:
    """One growing file. With `last_bytes`, a file that is already long is taken up so far from its end."""

    def __init__(self, path: Path, last_bytes: int | None = None) -> None:
        self.path = path
        self.offset = 0
        self._last_bytes = last_bytes
        self._inode: int | None = None

    def news(self) -> list[bytes]:
        """New lines without their ends; half a line comes whole another time. A missing file has none."""
        try:
            status = self.path.stat()
            if status.st_ino != self._inode or status.st_size < self.offset:
                self._begin(status.st_ino, status.st_size)
            return self._read() if status.st_size > self.offset else []
        except OSError:
            return []

    def _begin(self, inode: int, size: int) -> None:
        self._inode, self.offset = inode, 0
        if self._last_bytes is not None and size > self._last_bytes:
            with self.path.open("rb") as file:
                file.seek(size - self._last_bytes)
                file.readline()  # the rest of a line that began before
                self.offset = file.tell()

    def _read(self) -> list[bytes]:
        lines: list[bytes] = []
        with self.path.open("rb") as file:
            file.seek(self.offset)
            while data := file.read(BLOCK_BYTES):
                end = data.rfind(b"\n") + 1
                if not end:
                    break
                lines += [line for line in data[:end].split(b"\n") if line.strip()]
                self.offset += end
                file.seek(self.offset)
        return lines
