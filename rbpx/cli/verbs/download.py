"""Fetch from the hub what a sweep needs.

Takes the keys of `measure` and fetches what its missing cells need: weights and tokenizers into the hub's cache
(HF_HOME), samples of datasets into the store. HF_HUB_OFFLINE=1 then measures without a network.

First it says how much that is and what is here already. Stopped and typed again, it keeps whole files. What cannot be
fetched is named with its cells and does not stop the rest.
"""

import logging
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import Named, Rows
from rbpx.config.keys.runs import GridKeys
from rbpx.config.options import Format

if TYPE_CHECKING:
    from rbpx.measure.results import Measured


class DownloadKeys(Named, Rows, GridKeys):
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
    from rbpx.cli.tables.download import show
    from rbpx.display.records import print_records
    from rbpx.measure.download import Download

    download, format = Download(asked.requests), asked.request.format
    rows = download.rows()
    if format is Format.table and rows:
        show(rows)
    download.fetch()
    summary = download.summary()
    if summary is not None:
        logging.getLogger(__name__).info(summary)
    if format is not Format.table:
        print_records(download.rows(), format)
    return download.results()
