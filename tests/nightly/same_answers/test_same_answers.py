"""All that is asked of the frozen stores, the daily part apart."""

from pathlib import Path

import pytest

from tests.same_answers.answers import Ask, asks, differences, outside


@pytest.mark.parametrize("ask", [pytest.param(ask, id=f"{ask.store} {ask.line}") for ask in asks() if not ask.daily])
def test_a_question_answers_as_it_did(ask: Ask, frozen: Path) -> None:
    rows, _ = ask.found(frozen)
    differing = differences(ask.expected(), rows, ask.verb)
    assert not differing, f"{len(differing)} differences:\n" + "\n".join(differing[:20])
    assert [each for row in rows for each in outside(row)] == []
