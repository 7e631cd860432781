"""What a sweep needs of the hub: a row for each repository in, a table of sizes out."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.display.terminal import console, grid, put
from rbpx.display.vocabulary import UNKNOWN, in_bytes
from rbpx.store.store import Record


def show(rows: Sequence[Record]) -> None:
    """Print the sizes of each repository, and what is left to fetch of all."""
    screen = console()
    columns = ["", "repository", "revision", "files", "size", "here", "to fetch", "state"]
    table = grid("What the sweep needs of the hub", columns, left=3, spare=("revision", "files"))
    for row in rows:
        here, n_bytes = row["n_bytes_here"], row["n_bytes"] + row["n_read_bytes"]
        mark = "~" if row["n_read_bytes"] else ""
        unknown = row["state"] == "failed" or not n_bytes
        sizes = [UNKNOWN] * 3 if unknown else [f"{mark}{in_bytes(n_bytes)}", in_bytes(here), _left(row)]
        n_files = str(row["n_files"]) if row["n_files"] else UNKNOWN
        names = (row["kind"], row["repository"], row["revision"] or UNKNOWN)
        table.add_row(*(escape(text) for text in (*names, n_files, *sizes, row["state"])))
    put(screen, table)
    wanted = [row for row in rows if row["state"] == "to fetch"]
    total = sum(row["n_bytes"] - row["n_bytes_here"] for row in wanted)
    if total:
        screen.print(f"{in_bytes(total)} to fetch into the hub's cache.", soft_wrap=True)
    if any(row["n_read_bytes"] for row in wanted):
        screen.print(
            "~ read where it is, at most that much; the drawn documents are kept in the store.", soft_wrap=True
        )


def _left(row: Record) -> str:
    mark = "~" if row["n_read_bytes"] else ""
    return f"{mark}{in_bytes(row['n_bytes'] + row['n_read_bytes'] - row['n_bytes_here'])}"
