"""What a hub and its libraries raise in, one line for the user out: a wrong request, or a hub that fails."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rbpx.config.dataset import DatasetConfig
from rbpx.errors import MeasureError, RbpxError


def place_of(asked: DatasetConfig, with_split: bool = True) -> str:
    """A dataset as people name it: ORG/NAME, its subset, its split."""
    return ", ".join(part for part in (asked.hub, asked.subset, asked.split if with_split else None) if part)


@contextmanager
def explained(asked: DatasetConfig) -> Iterator[None]:
    """Turn what loading a dataset raises into one line.

    Raises:
        RbpxError: there is no such dataset, subset or revision, it may not be read, or it is a script.
        MeasureError: anything else that the hub or what it delivered did.
    """
    from datasets.exceptions import DataFilesNotFoundError, DatasetNotFoundError
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = f"dataset.hub={asked.hub}"
    try:
        yield
    except RbpxError:
        raise
    except GatedRepoError:
        raise RbpxError(_gated(name)) from None
    except RevisionNotFoundError:
        raise RbpxError(
            f"dataset.revision={asked.revision} does not exist in {asked.hub}; check the branch or commit"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise RbpxError(f"{name} is unknown to the hub; check its spelling, or log in if it is private") from None
    except DataFilesNotFoundError:  # a kind of DatasetNotFoundError
        raise RbpxError(f"{name} has no files of rows, as Parquet, JSON, CSV or text; give another dataset") from None
    except DatasetNotFoundError as problem:
        if "gated" not in str(problem):
            raise MeasureError(undelivered(asked, problem)) from None
        raise RbpxError(_gated(name)) from None
    except Exception as problem:  # whatever a network does, and whatever `datasets` makes of what it delivered
        if _is_ours(problem):
            raise
        wrong = _wrong_request(name, asked, str(problem))
        raise MeasureError(undelivered(asked, problem)) if wrong is None else RbpxError(wrong) from None


def _is_ours(problem: BaseException) -> bool:
    """Whether it began in our own code: then it is a defect, which no hub is to blame for."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(Path(__file__).parents[1])


def _gated(name: str) -> str:
    return f"{name} is gated; accept its terms on the hub and run `hf auth login`"


def _wrong_request(name: str, asked: DatasetConfig, text: str) -> str | None:
    """What `datasets` says in a plain ValueError or RuntimeError, so that its words alone tell."""
    script = re.search(r"scripts are no longer supported, but found (\S+)", text)
    if script:
        return f"{name} is a script, {script[1]}, which is never run; give a dataset of files, or dataset.path=FILE"
    subsets = re.search(
        r"BuilderConfig '.*' not found. Available: \[(.*?)\]|among the available configs: \[(.*?)\]", text
    )
    if subsets:
        known = (subsets[1] or subsets[2]).replace("'", "")
        return f"dataset.subset={asked.subset} is no subset of {asked.hub}; it has: {known}"
    return None


def undelivered(asked: DatasetConfig, problem: BaseException) -> str:
    """What to say when a hub failed."""
    while problem.__cause__ is not None:  # `datasets` wraps what went wrong
        problem = problem.__cause__
    reason = " ".join(str(problem).split())[:160]
    return (
        f"the hub did not deliver {place_of(asked)} ({type(problem).__name__}: {reason}); check the network and type "
        "the same again, or read a file with dataset.path=FILE"
    )
