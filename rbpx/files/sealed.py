"""JSON records that end with a digest of their contents, so that a flipped bit is detected when they are read."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rbpx.files.atomic import atomic_write_text
from rbpx.files.digest import digest
from rbpx.files.entries import plain_file

RECORD_MIB: Final = 16  # a fit of 10,000 runs takes a fifth of one

# ------------------------------------------------------------------------------------------------------------- seals


def write_sealed(path: Path, record: Mapping[str, Any], in_lines: bool = False, *, durable: bool = True) -> None:
    """Write a record atomically, with a digest of its contents, so that a flipped bit in it is detected.

    Args:
        path: the file.
        record: plain values.
        in_lines: one value per line, for people; that takes ten times as long to write.
        durable: whether it must survive a crash of the machine; see `atomic_write`.
    """
    atomic_write_text(path, _sealed(json.loads(json.dumps(record, allow_nan=False)), in_lines), durable=durable)


def _sealed(record: Mapping[str, Any], in_lines: bool = False) -> str:
    indent = 1 if in_lines else None
    return json.dumps({**record, "seal": digest(record)}, indent=indent, separators=(",", ": "))


def read_sealed(path: Path, *, always: bool = False, most_mib: int = RECORD_MIB) -> dict[str, Any]:
    """A record as it was written, without its seal; records of older versions have none.

    Args:
        path: the file.
        always: whether every version seals what is here, so that a record without a seal is not one.
        most_mib: how long it may be, MiB.

    Raises:
        ValueError: it is not a record, or not the one that was sealed; a `NoFileError` where no such file lies there.
        FileNotFoundError: it does not exist.
    """
    text = plain_file(path, most_mib).read_text(encoding="utf-8")
    try:
        return _read(text, always)
    except RecursionError:  # what json, or the digest, cannot follow was not written by it
        raise ValueError("it is nested too deeply") from None


def _read(text: str, always: bool) -> dict[str, Any]:
    record = json.loads(text, parse_constant=_refuse)
    if not isinstance(record, dict) or not record:
        raise ValueError("it is not a record")
    name, last = record.popitem()
    # The whole text is compared, because two spellings of one number may have the same digest. A last value that is
    # the digest of all before it is the seal whatever its name, because a bit may have flipped in the name. Compared on
    # one line, because the standard library writes indented JSON ten times slower; JSON strings contain no line breaks.
    on_one_line = re.sub(r"\n *", "", text)
    if on_one_line != _sealed(record) and (name == "seal" or last == digest(record)):
        raise ValueError("it has changed since it was written")
    if always and name != "seal":
        raise ValueError("it has no seal")
    return record if name == "seal" else {**record, name: last}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
