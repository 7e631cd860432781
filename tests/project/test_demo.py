"""The demo, on two documents a text: the page shows the rows that it prints.

`make nightly` has the second demo, which measures nothing and prints the same.
"""

from pathlib import Path

from tests.support.demo import run_demo
from tests.support.places import DOCS
from tests.support.shown import labels


def test_a_demo_that_is_shown_has_the_rows_that_the_demo_prints(tmp_path: Path) -> None:
    printed = labels(run_demo(tmp_path, {"pydoc": 2, "stdlib": 2})[1])
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    shown = labels(tutorial.split("<!-- demo -->")[1].split("<!-- /demo -->")[0])
    assert len(shown) >= 12
    assert [name for name in shown if name not in printed] == []
