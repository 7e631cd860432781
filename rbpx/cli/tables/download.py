"""Prints the sizes of the hub repositories that a sweep needs."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.table import table_of
from rbpx.display.terminal import console, print_tables, print_under
from rbpx.display.vocabulary import in_bytes, whole
from rbpx.store.store import Record

_REPOSITORIES: Final = table_of(
    "repositories", ("", "kind"), ("repository", "repository"), ("revision", "revision"), ("files", "n_files", whole),
    *((name, name.removeprefix("to "), "") for name in ("size", "here", "to fetch")),
    ("state", "state"),
    first="kind repository size here fetch state, revision",
)  # fmt: skip


def _told(row: Record) -> Record:
    total, here = row["n_bytes"] + row["n_read_bytes"], row["n_bytes_here"]
    mark = "~" if row["n_read_bytes"] else ""
    texts = {"size": f"{mark}{in_bytes(total)}", "here": in_bytes(here), "fetch": f"{mark}{in_bytes(total - here)}"}
    is_known = row["state"] != "failed" and total
    return row | (texts if is_known else dict.fromkeys(texts)) | {"n_files": row["n_files"] or None}


def show(rows: Sequence[Record]) -> None:
    """Prints the size of each repository, and how much of all is left to fetch."""
    screen = console()
    print_tables(screen, [_REPOSITORIES.of("What the sweep needs of the hub", map(_told, rows))])
    wanted = [row for row in rows if row["state"] == "to fetch"]
    total = sum(row["n_bytes"] - row["n_bytes_here"] for row in wanted)
    lines = [f"{in_bytes(total)} to fetch into the hub's cache."] if total else []
    if any(row["n_read_bytes"] for row in wanted):
        lines.append("~ read where it is, at most that much; the drawn documents are kept in the store.")
    print_under(screen, (), (), lines)
