"""What is made once: for a session and all of its workers, or for all formats of one question."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


@contextmanager
def answered_once() -> Iterator[None]:
    """A question that is asked in several widths or formats is computed for the first, and shown in all."""
    from rbpx.questions import ask as asking
    from rbpx.questions import render

    answers: dict[str, Any] = {}
    answer = render.answer

    def once(name: str, *args: Any, **options: Any) -> Any:
        if name not in answers:
            answers[name] = answer(name, *args, **options)
        return answers[name]

    with pytest.MonkeyPatch.context() as patch:
        for asks in (asking, render):
            patch.setattr(asks, "answer", once)
        yield


def once_a_session(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """The path that `make` returns for an empty folder; it is called by the first worker that asks, the others wait.

    What it makes has to lie in that folder. Where it fails, the next that asks tries again.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each worker has a folder of its own in that of the session
    folder, answer = base / f"shared-{name}", base / f"shared-{name}.path"
    with FileLock(base / f"shared-{name}.lock"):
        if not answer.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            answer.write_text(str(make(folder)))
    return Path(answer.read_text())
