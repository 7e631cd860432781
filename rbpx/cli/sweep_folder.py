"""The folder of a sweep: where Hydra works, where jobs of their own leave their outcomes, and where their logs are."""

import pickle
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from rbpx.cli.registry import Outcome
from rbpx.config.overrides import store_of
from rbpx.files.digest import digest
from rbpx.files.entries import atomic_write

_LOGS, _ENDED = "logs", "ended"


@contextmanager
def sweep_folder(alone: bool, words: Sequence[str]) -> Iterator[tuple[Path, list[Outcome]]]:
    """A folder for as long as the block takes, and the outcomes of its jobs, which are complete after it.

    Logs stay where something failed, until the same sweep goes well; where the block is stopped, jobs may go on that
    leave their outcomes there.

    Args:
        alone: whether jobs may run elsewhere; then it is in the store.
        words: of the sweep.
    """
    folder = _make(alone, words)
    outcomes: list[Outcome] = []
    try:
        yield folder, outcomes
    except KeyboardInterrupt as stop:
        if logs(folder).is_dir():
            stop.add_note(f"jobs that were started may go on, their logs: {logs(folder)}")
        else:
            _remove(folder)
        raise
    except BaseException:
        _keep_logs(folder)
        raise
    outcomes += [pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*.outcome"))]
    if all(outcome.is_whole for outcome in outcomes):
        _remove(folder)
    else:
        _keep_logs(folder)
    outcomes[:] = [replace(outcome, log=None) if outcome.is_whole else outcome for outcome in outcomes]


def logs(folder: Path) -> Path:
    """Where the logs of its jobs are, under launchers that write any."""
    return folder / _LOGS


def leave(folder: Path, outcome: Outcome) -> None:
    """Put down the outcome of a job that has a process of its own."""
    number = sum(1 for _ in folder.glob("*.outcome"))
    with atomic_write(folder / f"{number:06d}-{uuid.uuid4().hex[:6]}.outcome", durable=False) as temporary:
        temporary.write_bytes(pickle.dumps(outcome))


def _make(alone: bool, words: Sequence[str]) -> Path:
    if not alone:
        return Path(tempfile.mkdtemp(prefix="rbpx-"))
    store = Path(store_of(words)).expanduser().resolve()
    asked = sorted(word for word in words if not word.startswith("hydra"))
    folder = store / "sweeps" / f"{digest(asked)[:6]}-{uuid.uuid4().hex[:6]}"
    folder.mkdir(parents=True)
    return folder


def _keep_logs(folder: Path) -> None:
    """Remove what is there beside logs; all, where there are none."""
    if not logs(folder).is_dir():
        _remove(folder)
        return
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    (folder / _ENDED).touch()
    with suppress(OSError):
        (logs(folder) / "%j").rmdir()  # submitit makes it


def _remove(folder: Path) -> None:
    """Remove it, what earlier tries of the same sweep left, and the folders above that it was made in, if empty now."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.name == "sweeps":
        for ended in folder.parent.glob(f"{folder.name.partition('-')[0]}-*/{_ENDED}"):
            shutil.rmtree(ended.parent, ignore_errors=True)
        with suppress(OSError):  # not empty
            folder.parent.rmdir()
            folder.parent.parent.rmdir()
