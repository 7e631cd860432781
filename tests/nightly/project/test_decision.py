"""From training runs to a decision: the page goes through on a store of its own, and shows what its commands print."""

from pathlib import Path

import pytest

from docs.retell import told
from tests.support.places import DOCS, PROJECT
from tests.support.shown import compare_with_shown, of_many

PAGE = (DOCS / "decision.md").read_text(encoding="utf-8")
README = (PROJECT / "README.md").read_text(encoding="utf-8")
FEW = {"pydoc": 3}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty, as the page begins; its blocks fill it in their order."""
    return tmp_path_factory.mktemp("decision") / "store"


BLOCKS = [*told(PAGE), *(pair for pair in told(README) if of_many(pair[0]))]


@pytest.mark.parametrize(("commands", "shown"), BLOCKS, ids=lambda it: it[0])
def test_the_page_shows_what_its_commands_print(commands: list[str], shown: str, store: Path, cwd: Path) -> None:
    compare_with_shown(commands, shown, store, cwd, FEW)
