"""A small evaluation text, for trainings that take moments."""

import pytest

from rbpx.data.corpus import read_stdlib


@pytest.fixture
def small_evaluation(monkeypatch: pytest.MonkeyPatch) -> str:
    """The evaluation is one module of the standard library: all of it takes long to cut into so small a vocabulary."""
    argparse = dict(read_stdlib())["argparse.py"]
    monkeypatch.setattr("experiments.ladder.text.read_stdlib", lambda: [("argparse.py", argparse)])
    monkeypatch.setattr("experiments.ladder.text.read_pydoc", list)
    return argparse
