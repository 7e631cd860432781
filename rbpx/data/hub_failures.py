"""Turns what a hub and its libraries raise into one line for the user: a wrong request, or a hub that fails."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rbpx.config.text.dataset import DatasetConfig
from rbpx.errors import MeasureError, NotHereError, RbpxError, reason


def place_of(dataset: DatasetConfig, with_split: bool = True) -> str:
    """A dataset as people name it: ORG/NAME, its subset, its split."""
    return ", ".join(part for part in (dataset.hub, dataset.subset, dataset.split if with_split else None) if part)


@contextmanager
def explained(dataset: DatasetConfig) -> Iterator[None]:
    """Turn what loading a dataset raises into one line.

    Raises:
        RbpxError: there is no such dataset, subset or revision, it may not be read, or it is a script.
        MeasureError: the hub failed in any other way, or delivered something unreadable.
    """
    from datasets.exceptions import DataFilesNotFoundError, DatasetNotFoundError
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = f"dataset.hub={dataset.hub}"
    try:
        yield
    except RbpxError:
        raise
    except GatedRepoError:
        raise RbpxError(_gated(name)) from None
    except RevisionNotFoundError:
        raise RbpxError(
            f"dataset.revision={dataset.revision} does not exist in {dataset.hub}; check the branch or commit"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise RbpxError(f"{name} is unknown to the hub; check its spelling, or log in if it is private") from None
    except DataFilesNotFoundError:  # a kind of DatasetNotFoundError
        raise RbpxError(f"{name} has no files of rows, as Parquet, JSON, CSV or text; give another dataset") from None
    except DatasetNotFoundError as problem:
        if "gated" not in str(problem):
            raise undelivered(dataset, problem) from None
        raise RbpxError(_gated(name)) from None
    except Exception as problem:  # whatever a network does, and whatever `datasets` makes of what it delivered
        if _is_ours(problem):
            raise
        wrong = _wrong_request(name, dataset, str(problem))
        raise undelivered(dataset, problem) if wrong is None else RbpxError(wrong) from None


def _is_ours(problem: BaseException) -> bool:
    """Whether it was raised in our own code: then it is a bug of ours, not a failure of the hub."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(Path(__file__).parents[1])


def _gated(name: str) -> str:
    return f"{name} is gated; accept its terms on the hub and run `hf auth login`"


def _wrong_request(name: str, dataset: DatasetConfig, text: str) -> str | None:
    """Explain a wrong request that `datasets` reports as a plain ValueError or RuntimeError, recognised by its text."""
    script = re.search(r"scripts are no longer supported, but found (\S+)", text)
    if script:
        return f"{name} is a script, {script[1]}, which is never run; give a dataset of files, or dataset.path=FILE"
    subsets = re.search(
        r"BuilderConfig '.*' not found. Available: \[(.*?)\]|among the available configs: \[(.*?)\]", text
    )
    if subsets:
        available = (subsets[1] or subsets[2]).replace("'", "")
        return f"dataset.subset={dataset.subset} is not a subset of {dataset.hub}; it has: {available}"
    return None


def undelivered(dataset: DatasetConfig, problem: BaseException) -> MeasureError:
    """The error for a hub that failed, or that must not be asked."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    while problem.__cause__ is not None:  # `datasets` wraps what went wrong
        problem = problem.__cause__
    if isinstance(problem, OfflineModeIsEnabled):
        what = f"{place_of(dataset)} is not on this machine, and HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is set"
        return NotHereError(what, shlex.join(["python", "-m", "rbpx", "download", f"dataset={dataset.name}"]))
    return MeasureError(
        f"the hub did not deliver {place_of(dataset)} ({type(problem).__name__}: {reason(problem, 160)}); check the "
        "network and type the same again, or read a file with dataset.path=FILE"
    )
