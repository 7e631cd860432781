"""Run a named study, and write its findings into its file.

Measures what a study still needs, runs its analyses, and writes the result that the study defines in SQL to the end of
its file, replacing earlier findings, with the runs it comes from. --output FILE writes elsewhere. `run experiment=NAME`
does the same without writing. A study of your own is experiment/NAME.yaml in the folder that --config-dir names; those
of rbpx are in experiments/.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbpx.cli.registry import Job, Outcome, Verb
from rbpx.cli.verbs import run
from rbpx.config.keys.runs import GRID
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.config.request import Request
    from rbpx.measure.results import Measured

VERB = Verb(
    order=30,
    theme="measure",
    examples=(
        "python -m rbpx record experiment=rbp_figure_3 --output figure_3.yaml",
        "python -m rbpx record experiment=rbp_figure_3 model=ladder --output figure_3.yaml",
    ),
    primary="measure",
    keys=(*GRID, "experiment", "sql_timeout_s", "sql_memory_mib", "output"),
    performs=True,
)


def start(job: Job) -> "Measured | None":
    """Start as `run` does, after checking that there is a study and a place for its findings."""
    from rbpx.files.output import check_output

    request, changes = job.request, job.line.changes_of_study
    if request.study is None:
        raise RbpxError("record needs a named study: python -m rbpx record experiment=NAME; see python -m rbpx --help")
    if changes and request.output is None:
        raise RbpxError(
            f"{changes[0]} makes another study of experiment={request.study.name}, whose file is for its own findings; "
            "name a file for these with --output FILE"
        )
    check_output(request.output or str(_file(request, job.line)))
    return run.start(job)


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> "list[Measured]":
    """Measure and analyse as `run` does, then write the findings, unless something failed."""
    from rbpx.cli.findings import write_findings
    from rbpx.cores import is_main_process
    from rbpx.store.sql import SqlLimits

    grids, requests, done = run.measured(outcomes)
    rows = run.analyse(requests, done) if requests and is_main_process() else []
    complete = not any(grid.error or grid.failures for grid in grids)
    if outcomes and is_main_process() and complete:
        request = outcomes[0].request
        source, limits = _file(request, line), SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
        written = write_findings(request.study, rows, source, request.output, line.changes_of_study, limits)
        print(f"findings of {request.study.name} written to {written}", file=sys.stderr)
    return grids


def _file(request: "Request", line: "CommandLine") -> Path:
    """The file of the study, in experiments/ or in a folder of the user."""
    from rbpx.config.overrides import config_folders
    from rbpx.config.places import study_file

    assert request.study is not None
    return study_file(str(request.study.name), config_folders(line.hydra))
