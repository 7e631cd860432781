"""Fetch from the hub what a sweep needs.

Takes the words of `measure`, and fetches what its missing cells read from the hub: safetensors, configurations and
tokenizers into the hub's cache (HF_HOME), samples of datasets into the store. No model is loaded. First it says how
much that is, and what is here already; then huggingface_hub fetches files, side by side; stop it and type the same
again, and those that are whole stay. HF_HUB_OFFLINE=1 then measures where there is no network. What cannot be fetched
is named with its cells, and does not stop the rest.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.cli.registry import Job, Outcome, Verb
from rbpx.config.keys.runs import GRID
from rbpx.config.options import Format

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.config.request import Request
    from rbpx.measure.results import Measured
    from rbpx.store.store import Record

VERB = Verb(
    order=50,
    theme="measure",
    examples=(
        "python -m rbpx download -m model=pythia size=70m,160m dataset=wikipedia,gsm8k",
        "HF_HUB_OFFLINE=1 python -m rbpx measure -m model=pythia size=70m,160m dataset=wikipedia,gsm8k",
    ),
    primary="measure",
    keys=(*GRID, "best", "shard", "experiment", "format"),
)


def start(job: Job) -> "tuple[list[Record], list[Measured]] | None":
    """Fetch for a job that has a process of its own; None where it waits for its sweep, so that all is asked once."""
    return _fetched([job.request], Format.json) if job.alone else None


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> "list[Measured]":
    """Fetch for the jobs that waited, together, and print what became of each repository."""
    from rbpx.cli.tables.download import show
    from rbpx.display.records import print_records

    format = outcomes[0].request.format
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    waiting = [outcome.request for outcome in outcomes if outcome.answer is None]
    if waiting:
        answers.append(_fetched(waiting, format))
    by_place = {(row["kind"], row["repository"], row["revision"]): row for rows, _ in answers for row in rows}
    if format is not Format.table:
        print_records(by_place.values(), format)
    elif not waiting:  # jobs with processes of their own, whose output is a log
        show(list(by_place.values()))
    return [result for _, results in answers for result in results]


def _fetched(requests: "Sequence[Request]", format: Format) -> "tuple[list[Record], list[Measured]]":
    """Fetch what some requests need: a row for each repository, and what became of each grid."""
    from rbpx.cli.tables.download import show
    from rbpx.measure.download.download import Download

    download = Download(requests)
    rows = download.rows()
    if format is Format.table and rows:
        show(rows)
    download.fetch()
    summary = download.summary()
    if summary is not None:
        logging.getLogger(__name__).info(summary)
    return download.rows(), download.results()
