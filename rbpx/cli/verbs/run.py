"""Measure the missing cells, then print the laws side by side.

Measures what the store lacks of a grid (family x size x dataset), then prints its laws of -ln RBP_k (arXiv 2510.20387,
eq. 5) and cross-entropy. Typed again, it continues.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import Answered, Detailed, PrintedRows, Spreadsheet, Study
from rbpx.config.keys.runs import GridKeys
from rbpx.questions.registry import own_keys

if TYPE_CHECKING:
    from rbpx.measure.results import Measured
    from rbpx.store.store import Record


class RunKeys(Study, Detailed, Spreadsheet, Answered, PrintedRows, GridKeys):
    """Keys of run."""

    WITHOUT = ("shard",)


VERB = Verb(
    order=10,
    theme="measure",
    examples=(
        "python -m rbpx",
        "python -m rbpx model=ladder dataset=stdlib size='[3k,25k,200k]'",
        "python -m rbpx -m model=ladder dataset=pydoc,stdlib",
        "python -m rbpx dataset=wikitext dataset.path=wiki.test.raw",
        "python -m rbpx model=hub model.id='[A,B,C]' model.family=mine dataset=file dataset.path=notes.jsonl",
    ),
    keys=RunKeys,
    more=own_keys("fit"),
    performs=True,
)


_LOGGER = logging.getLogger(__name__)
_FIRST = (
    "measuring the bundled models on the text of Python's library, which takes about a minute on two cores, then "
    "fitting their laws; both stay in store/ (python -m rbpx --help says what else there is)"
)


def perform(asked: Command) -> "list[Measured]":
    """Imports a study's files, measures what is missing, and prints the laws over the whole sweep."""
    from rbpx.files.output import check_output

    if asked.request.output is not None:
        check_output(asked.request.output)
    return performed(asked, asked.request.output)[0]


def performed(asked: Command, output: str | None = None) -> "tuple[list[Measured], list[Record]]":
    """The outcome of each grid, and the rows of the questions asked of all grids, printed to `output`."""
    from rbpx.cli.launcher import measured
    from rbpx.cli.verbs.import_ import import_study
    from rbpx.cores import is_main_process

    for request in asked.requests:
        import_study(request)
    if not asked.line.overrides and not Path(asked.request.store).expanduser().is_dir():
        _LOGGER.info(_FIRST)
    of_models = [request for request in asked.requests if request.model is not None]
    grids = measured(asked, of_models) if of_models else []
    if not is_main_process():
        return grids, []
    return grids, _analyse(asked.requests, [key for grid in grids for key in grid.cell_keys], output)


def _analyse(requests: Sequence[RunKeys], done: Sequence[str], output: str | None) -> "list[Record]":
    from rbpx.questions.render import perform

    first = requests[0]
    if done:
        return perform(first.analyses, [(first, done)], False, output)
    if first.model is None:
        return perform(first.analyses, [(request, None) for request in requests], output=output)
    return []
