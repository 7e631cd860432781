"""The verb `measure`: every cell of a grid that the store does not hold yet is measured.

A sweep measures after its last job was composed, so that each model is loaded once for all of its texts. Only a job
that a launcher gave a process of its own measures at once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.cli.verb import Job, Outcome, Verb

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.measure.results import Measured

VERB = Verb(
    order=20,
    summary="only measure",
    help="As `run`, without the laws.",
    examples=("python -m rbpx measure model=ladder dataset=pydoc",),
    primary="measure",
)


def start(job: Job) -> "Measured | None":
    """Measure the grid of a job that has a process of its own; None where it waits for the rest of its sweep."""
    from rbpx.measure.runner import measure_grids

    return measure_grids([job.request])[0] if job.alone else None


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> "list[Measured]":
    """Measure the grids that waited."""
    return measured(outcomes)


def measured(outcomes: Sequence[Outcome]) -> "list[Measured]":
    """What became of each job's grid, in the order of the jobs; those that waited are measured now, together."""
    from rbpx.measure.runner import measure_grids

    waiting = iter(measure_grids([outcome.request for outcome in outcomes if outcome.answer is None]))
    return [next(waiting) if outcome.answer is None else outcome.answer for outcome in outcomes]
