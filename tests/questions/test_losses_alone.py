"""A store of imported losses, without a share, a token or D: every question answers, or says in one line why not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.questions.registry import names
from rbpx.store.sql import connected_once
from tests.support.asking import answer_or_refusal, ask, imported


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    rows = "S,loss_nats\n" + "".join(f"1e{at},{5.5 - 0.5 * at + 0.01 * at**2}\n" for at in (5, 6, 7, 8))
    store = imported(tmp_path_factory.mktemp("losses") / "store", rows, dataset="c4")
    with connected_once():
        yield store


@pytest.mark.parametrize("verb", names())
def test_every_question_answers_or_says_why_not(verb: str, losses: Path) -> None:
    assert answer_or_refusal(losses, verb, resamples=20).strip()


@pytest.mark.parametrize("verb", ["fit", "predict"])
def test_laws_of_losses_are_answered(verb: str, losses: Path) -> None:
    assert ask(losses, verb, laws=["cross_entropy"]).rows
