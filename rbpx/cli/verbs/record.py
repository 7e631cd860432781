"""Run a named study, and write its findings into its file.

Measures what a study still needs, runs its analyses, and writes the result of its SQL, with the runs it comes from, to
the end of the study's file, or to --output FILE.

It takes the place of earlier findings; `run experiment=NAME` writes nothing. A study of your own is
experiment/NAME.yaml in the folder of --config-dir; those of rbpx are in experiments/.
"""

from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.cli.verbs import run
from rbpx.config.keys.output import Limited, Queried, Study, Written
from rbpx.config.keys.runs import GridKeys
from rbpx.errors import RbpxError
from rbpx.files.escapes import say

if TYPE_CHECKING:
    from rbpx.measure.results import Measured


class RecordKeys(Study, Queried, Limited, Written, GridKeys):
    """Keys of record."""

    WITHOUT = ("best", "shard")


VERB = Verb(
    order=30,
    theme="measure",
    examples=(
        "python -m rbpx record experiment=rbp_figure_3 --output figure_3.yaml",
        "python -m rbpx record experiment=rbp_figure_3 model=ladder --output figure_3.yaml",
    ),
    keys=RecordKeys,
    performs=True,
)


def perform(asked: Command) -> "list[Measured]":
    """Does what `run` does, and writes the findings unless something failed."""
    from rbpx.cli.findings import write_findings
    from rbpx.config.compose import places_of
    from rbpx.config.folders import options
    from rbpx.cores import is_main_process
    from rbpx.files.output import check_output
    from rbpx.store.sql import SqlLimits

    request, line = asked.request, asked.line
    if request.study is None:
        raise RbpxError("record needs a named study: python -m rbpx record experiment=NAME; see python -m rbpx --help")
    source = options("experiment", places_of(line.overrides, line.own))[request.study.name]
    if line.changes_of_study and request.output is None:
        raise RbpxError(
            f"{line.changes_of_study[0]} makes another study of experiment={request.study.name}, whose file is for its "
            "own findings; name a file for these with --output FILE"
        )
    check_output(request.output or str(source))
    grids, rows = run.performed(asked)
    if is_main_process() and not any(grid.error or grid.failures for grid in grids):
        limits = SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
        written = write_findings(request.study, rows, source, request.output, line.changes_of_study, limits)
        say(f"findings of {request.study.name} written to {written}")
    return grids
