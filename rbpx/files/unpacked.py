"""Reads the bytes or lines of a user's file, unpacked where its name ends in .gz, and never beyond what it may hold.

A packed file of a few MiB can hold thousands of times as much, in one row or in many. Reading stops where a bound is
reached, before more is kept in memory.
"""

import gzip
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError

MIB: Final = 2**20
_VALUE: Final = 64  # bytes that a value takes in memory, however little it takes in its file


@dataclass(frozen=True)
class Bounds:
    """What a file may hold.

    Attributes:
        row_mib: of one row, or of one text, MiB: 2^20 characters each.
        file_mib: of a packed file (.gz, Parquet) once it is unpacked, MiB; each value of a Parquet file, and of a table
            of values in any format, counts 64 bytes.
        advice: what to do about a larger row or file that is meant, with {key} for what bounds it.
    """

    row_mib: int = 16
    file_mib: int = 1024
    advice: str = "check the file, or split it"

    def row_too_long(self, place: str) -> RbpxError:
        """The error for a row or a text beyond its bound."""
        return RbpxError(f"{place} holds more than {self.row_mib:,} MiB; {self.advice.format(key='row_mib')}")

    def file_too_large(self, path: Path) -> RbpxError:
        """The error for a file beyond its bound."""
        return RbpxError(
            f"{path} holds more than {self.file_mib:,} MiB once it is unpacked; {self.advice.format(key='file_mib')}"
        )

    @property
    def most_values(self) -> int:
        """Values, rows times columns, that it may hold."""
        return self.file_mib * MIB // _VALUE

    def too_many_values(self, path: Path) -> RbpxError:
        """The error for a table of more."""
        return RbpxError(
            f"{path} holds more than {self.most_values:,} values (rows times columns); "
            f"{self.advice.format(key='file_mib')}"
        )


class Unpacked(io.RawIOBase):
    """The unpacked bytes of a file, hashed and counted as they are read."""

    def __init__(self, file: Any, path: Path, bounds: Bounds | None) -> None:
        self._file, self._path, self._bounds = file, path, bounds
        self.n_bytes, self.sha256 = 0, hashlib.sha256()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as fit."""
        chunk = self._file.read(len(buffer))
        self.n_bytes += len(chunk)
        if self._bounds is not None and self.n_bytes > self._bounds.file_mib * MIB:
            raise self._bounds.file_too_large(self._path)
        self.sha256.update(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def unpacked(path: Path, bounds: Bounds) -> Iterator[Unpacked]:
    """The bytes of a file as a stream, decompressed where its name ends in .gz.

    Raises:
        RbpxError: while it is read, where it holds more than `bounds` allow a packed file.
    """
    with path.open("rb") as file:
        if path.suffix.lower() != ".gz":
            yield Unpacked(file, path, None)
            return
        with gzip.GzipFile(fileobj=file) as packed:
            yield Unpacked(packed, path, bounds)


def read_bytes(path: Path, bounds: Bounds, most_mib: int | None = None) -> tuple[bytes, str]:
    """The bytes of a file and their SHA-256, decompressed where its name ends in .gz.

    Args:
        path: the file.
        bounds: what it may hold.
        most_mib: what the file may hold as one text; None where it has rows.

    Raises:
        RbpxError: it holds more.
    """
    parts = bytearray()
    with unpacked(path, bounds) as file:
        while chunk := file.read(MIB):
            parts += chunk
            if most_mib is not None and len(parts) > most_mib * MIB:
                raise bounds.row_too_long(str(path))
    return bytes(parts), file.sha256.hexdigest()


class Lines:
    """The lines of a file, each with its line end, and how many were read; a byte order mark is left out.

    Attributes:
        number: of the line read last, from 1.
    """

    def __init__(self, file: Unpacked, path: Path, bounds: Bounds, newline: str) -> None:
        """Read from an unpacked file.

        Args:
            file: its bytes.
            path: its name, for errors.
            bounds: what a row may hold.
            newline: what ends a line, as for `open`.
        """
        buffered = io.BufferedReader(file, MIB)
        self._text = io.TextIOWrapper(buffered, encoding="utf-8-sig", newline=newline)
        self._path, self._bounds = path, bounds
        self.number, self._row_begins, self._row_length = 0, 1, 0

    def begin_row(self) -> int:
        """What is read from here on is another row; the line on which it begins."""
        self._row_begins, self._row_length = self.number + 1, 0
        return self._row_begins

    def __iter__(self) -> Iterator[str]:
        """Each line.

        Raises:
            RbpxError: the lines of a row hold more than a row may.
        """
        most, read = self._bounds.row_mib * MIB, self._text.readline
        while line := read(most + 1):
            self._row_length += len(line)
            if self._row_length > most:
                raise self._bounds.row_too_long(f"the row that begins on line {self._row_begins:,} of {self._path}")
            self.number += 1
            yield line
