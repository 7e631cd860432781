"""A terminal of this process."""

import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def terminal() -> Iterator[tuple[TextIO, list[str]]]:
    """A stream to one of 120 columns, and a list of what it was sent once the block has ended."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    sent: list[bytes] = []
    shown: list[str] = []

    def read() -> None:
        while part := os.read(outer, 65536):
            sent.append(part)
            if part.endswith(b"\0"):
                return

    reading = threading.Thread(target=read)
    reading.start()
    with open(inner, "w", encoding="utf-8", buffering=1, newline="") as stream:
        yield stream, shown
        stream.write("\0")
        stream.flush()
        reading.join(60)
    os.close(outer)
    shown.append(b"".join(sent).decode().removesuffix("\0").replace("\r\n", "\n"))
