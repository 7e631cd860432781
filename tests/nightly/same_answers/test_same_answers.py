"""All that is asked of the frozen stores, the daily part apart."""

import shutil
from pathlib import Path

import pytest

from tests.same_answers.answers import STORES, Ask, asks, differences, outside
from tests.support.once import once_a_session


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the frozen stores."""
    return once_a_session(tmp_path_factory, "frozen", lambda to: Path(shutil.copytree(STORES, to / "stores")))


@pytest.mark.parametrize("ask", [pytest.param(ask, id=f"{ask.store} {ask.line}") for ask in asks() if not ask.daily])
def test_a_question_answers_as_it_did(ask: Ask, stores: Path) -> None:
    rows, _ = ask.found(stores)
    differing = differences(ask.expected(), rows, ask.verb)
    assert not differing, f"{len(differing)} differences:\n" + "\n".join(differing[:20])
    assert [each for row in rows for each in outside(row)] == []
