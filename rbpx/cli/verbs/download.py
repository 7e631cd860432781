"""Fetch from the hub what a sweep needs.

Takes the keys of `measure` and fetches what its missing cells need: weights and tokenizers into the hub's cache
(HF_HOME), samples of datasets into the store. HF_HUB_OFFLINE=1 then measures without a network.

First it says how much that is and what is here already. Stopped and typed again, it keeps whole files. What cannot be
fetched is named with its cells and does not stop the rest.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import Named, PrintedRows
from rbpx.config.keys.runs import GridKeys
from rbpx.config.options import Format
from rbpx.display.table import table_of
from rbpx.display.terminal import console, print_tables, print_under
from rbpx.display.vocabulary import in_bytes, whole

if TYPE_CHECKING:
    from rbpx.measure.results import Measured
    from rbpx.store.store import Record

_REPOSITORIES: Final = table_of(
    "repositories", ("", "kind"), ("repository", "repository"), ("revision", "revision"), ("files", "n_files", whole),
    *((name, name.removeprefix("to "), "") for name in ("size", "here", "to fetch")),
    ("state", "state"),
    first="kind repository size here fetch state, revision",
)  # fmt: skip


class DownloadKeys(Named, PrintedRows, GridKeys):
    """Keys of download."""


VERB = Verb(
    order=50,
    theme="measure",
    examples=(
        "python -m rbpx download -m model=pythia size=70m,160m dataset=wikipedia,gsm8k",
        "HF_HUB_OFFLINE=1 python -m rbpx measure -m model=pythia size=70m,160m dataset=wikipedia,gsm8k",
    ),
    keys=DownloadKeys,
)


def perform(asked: Command) -> "list[Measured]":
    """Fetches what all jobs of a sweep need, and prints the outcome for each repository."""
    from rbpx.display.records import print_records
    from rbpx.measure.download import Download

    download, format = Download(asked.requests), asked.request.format
    rows = download.rows()
    if format is Format.table and rows:
        _show(rows)
    download.fetch()
    summary = download.summary()
    if summary is not None:
        logging.getLogger(__name__).info(summary)
    if format is not Format.table:
        print_records(download.rows(), format)
    return download.results()


def _told(row: "Record") -> "Record":
    total, here = row["n_bytes"] + row["n_read_bytes"], row["n_bytes_here"]
    mark = "~" if row["n_read_bytes"] else ""
    texts = {"size": f"{mark}{in_bytes(total)}", "here": in_bytes(here), "fetch": f"{mark}{in_bytes(total - here)}"}
    is_known = row["state"] != "failed" and total
    return row | (texts if is_known else dict.fromkeys(texts)) | {"n_files": row["n_files"] or None}


def _show(rows: "Sequence[Record]") -> None:
    screen = console()
    print_tables(screen, [_REPOSITORIES.of("What the sweep needs of the hub", map(_told, rows))])
    wanted = [row for row in rows if row["state"] == "to fetch"]
    total = sum(row["n_bytes"] - row["n_bytes_here"] for row in wanted)
    lines = [f"{in_bytes(total)} to fetch into the hub's cache."] if total else []
    if any(row["n_read_bytes"] for row in wanted):
        lines.append("~ read where it is, at most that much; the drawn documents are kept in the store.")
    print_under(screen, (), (), lines)
