"""Prints the sizes of the hub repositories that a sweep needs."""

from collections.abc import Sequence
from typing import Any, Final

from rbpx.display.terminal import console, print_tables, print_under
from rbpx.display.view import Column, TableCell, View, text, whole
from rbpx.display.vocabulary import UNKNOWN, in_bytes
from rbpx.store.store import Record


def _size(name: str) -> Column[Any]:
    def cell(row: Any) -> TableCell:
        total = row["n_bytes"] + row["n_read_bytes"]
        n_bytes = {"size": total, "here": row["n_bytes_here"], "to fetch": total - row["n_bytes_here"]}[name]
        mark = "~" if row["n_read_bytes"] and name != "here" else ""
        return TableCell(
            (UNKNOWN if row["state"] == "failed" or not total else f"{mark}{in_bytes(n_bytes)}",), (n_bytes,)
        )

    return Column(name, (name,), cell)


_REPOSITORIES: Final = View[Any](
    "repositories",
    text("", "kind"),
    text("repository", "repository"),
    text("revision", "revision", spare=1),
    whole("files", "n_files", lambda row: row["n_files"] or None, spare=2),
    *map(_size, ("size", "here", "to fetch")),
    text("state", "state"),
)


def show(rows: Sequence[Record]) -> None:
    """Prints the size of each repository, and how much of all is left to fetch."""
    screen = console()
    print_tables(screen, [_REPOSITORIES.table("What the sweep needs of the hub", rows)])
    wanted = [row for row in rows if row["state"] == "to fetch"]
    total = sum(row["n_bytes"] - row["n_bytes_here"] for row in wanted)
    lines = [f"{in_bytes(total)} to fetch into the hub's cache."] if total else []
    if any(row["n_read_bytes"] for row in wanted):
        lines.append("~ read where it is, at most that much; the drawn documents are kept in the store.")
    print_under(screen, (), (), lines)
