"""What a job leaves for the end of its sweep: written in whatever process it ran, read by the one that asked."""

import os
import pickle
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rbpx.config.request import Request
from rbpx.measure.results import Failure, Measured

ENVIRONMENT = "RBPX_SWEEP_DIR"


@dataclass(frozen=True)
class Outcome:
    """What one job did.

    Attributes:
        request: what it was asked.
        cell_keys: cells that the store now holds, measured now or before.
        failures: cells that were not.
        error: why the job did nothing at all, None if it did something.
        status: exit status that the error stands for.
        waits: whether its grid is measured after the last job, with those of the others.
        found: results that stand in no store, to be printed when all jobs are done.
    """

    request: Request | None = None
    cell_keys: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    error: str | None = None
    status: int = 0
    waits: bool = False
    found: list[Any] = field(default_factory=list)


def of_measured(measured: Measured) -> Outcome:
    """The outcome of a job that measured a grid; one that was not measured has no request to go on with."""
    return Outcome(
        request=measured.request if measured.error is None else None,
        cell_keys=list(measured.cell_keys),
        failures=list(measured.failures),
        error=measured.error,
        status=measured.status,
    )


def leave(outcome: Outcome) -> None:
    """Put down the outcome of this job."""
    folder = Path(os.environ[ENVIRONMENT])
    number = sum(1 for _ in folder.glob("*.outcome"))
    parts = folder / f"{uuid.uuid4().hex}.tmp"
    parts.write_bytes(pickle.dumps(outcome))
    parts.rename(folder / f"{number:06d}-{uuid.uuid4().hex[:6]}.outcome")


def collect(folder: Path) -> list[Outcome]:
    """The outcomes of all jobs of a sweep, in the order in which they ended."""
    return [pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*.outcome"))]
