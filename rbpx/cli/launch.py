"""Runs a command line: composes its requests, lets its verb perform them, and lists what failed."""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rbpx.cli.argv import CommandLine
from rbpx.cli.registry import Command, asking, module
from rbpx.config.compose import compose, launch
from rbpx.config.keys.key import keys_of
from rbpx.config.keys.output import Printed
from rbpx.config.keys.runs import GridKeys
from rbpx.config.options import Format
from rbpx.cores import is_main_process
from rbpx.errors import RbpxError
from rbpx.files.cells import write_for_spreadsheets
from rbpx.files.escapes import say
from rbpx.questions.registry import analyses, analysis, names

if TYPE_CHECKING:
    from rbpx.measure.results import Measured

_GRID: Final = {*keys_of(GridKeys), "experiment"}


def perform(line: CommandLine) -> int:
    """Performs a command line: 0 if done; 1 if something failed; 2 if the request was wrong and nothing was done."""
    asked = asking(line.verb)
    if line.flags:
        if asked.is_of_file:
            raise RbpxError(f"{line.verb} has no files of conf/, so {line.flags[0]} has nothing to print; drop it")
        launch(asked, line.flags, line.overrides, line.own, lambda request: None)
        return 0
    jobs = compose(asked, line.overrides, line.own, line.sweeps)
    for request in jobs.requests:
        if isinstance(request, Printed):
            _check_shown(line.verb, request)
            write_for_spreadsheets(request.spreadsheet)
        if asked.is_of_grid:
            request.download = line.retyped("download", _says_how)
    measured = module(line.verb).perform(Command(line, jobs.requests, jobs.launcher))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from rbpx.measure.distributed import destroy_process_group

        destroy_process_group()
    return _ended(measured or [])


def _says_how(key: str) -> bool:
    """Whether a key says how a grid is measured or read, not which grid."""
    return re.split("[.@/]", key)[0] not in _GRID


def _ended(measured: "Sequence[Measured]") -> int:
    failures = [failure for grid in measured for failure in grid.failures]
    errors = [(grid.error, grid.status) for grid in measured if grid.error is not None]
    told = [f"{each.cell} failed: {each.error}" for each in failures]
    for line in dict.fromkeys([*told, *(error for error, _ in errors)]):
        if is_main_process():
            say(f"rbpx: {line}")
    if not errors and not failures:
        return 0
    is_wrong = all(each.request_is_wrong for each in failures) and all(status == 2 for _, status in errors)
    return 2 if is_wrong and not any(grid.cell_keys for grid in measured) else 1


def _check_shown(verb: str, request: Printed) -> None:
    form, is_question = request.format.value, verb in names()
    if request.format is Format.jobs and verb != "plan":
        raise RbpxError("format=jobs is of a plan: python -m rbpx plan ... --format jobs")
    known = (Format.table, Format.csv, Format.json, Format.jobs)
    if not is_question and verb != "report" and request.format not in known:
        raise RbpxError(f"format={form} is of questions and the report; {verb} prints table, csv or json")
    if request.format.is_figures and is_question and not analysis(verb).draws:
        draws = [name for name, each in analyses().items() if each.draws]
        raise RbpxError(f"{verb} draws no figures for --format {form}; ask one of {', '.join(draws)}")
