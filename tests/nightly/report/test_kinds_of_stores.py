"""Pages of every kind of store, in a real browser: each figure is drawn, nothing complains, nothing is too wide."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from rbpx.report.contents import gather
from rbpx.report.page import page
from rbpx.store.sql import connected_once
from tests.support.asking import imported
from tests.support.asking import request as asked
from tests.support.browser import Visit

S: Final = (3e7, 1e8, 3e8, 1e9, 3e9)
D: Final = (2e9, 8e9, 3e10, 1e11)


def loss(size: float, tokens: float, E: float = 1.7) -> str:
    """A loss that scatters about its law."""
    off = 0.002 * np.sin(1000 * np.log(size) + 77 * np.log(tokens))
    return repr(float((E + 400 * size**-0.34 + 400 * tokens**-0.28) * np.exp(off)))


def right(size: float, item: int) -> int:
    """Of 50 attempts."""
    return round(50 * min(0.9, (item + 1) / 60 * (size / 3e9) ** 0.3))


GRID: Final = ["S,D,dataset,loss_nats", *(f"{s},{d},c4,{loss(s, d)}" for s in S for d in D)]
KINDS: Final[dict[str, tuple[list[str], dict[str, Any]]]] = {
    "along S": (["S,dataset,loss_nats", *(f"{s},c4,{loss(s, 1e12)}" for s in S)], {}),
    "along D": (["S,D,dataset,loss_nats", *(f"1e9,{d},c4,{loss(1e9, d)}" for d in D)], {}),
    "in S and D": (GRID, {}),
    "in S and D, axis=D": (GRID, {"axis": "D"}),
    "in S and D, axis=C": (GRID, {"axis": "C"}),
    "with variants": (
        [
            "S,D,dataset,variant,loss_nats",
            *(f"{s},{d},val (page),{v},{loss(s, d, E)}" for v, E in (("ours", 1.7), ("b", 1.75)) for s in S for d in D),
        ],
        {},
    ),
    "a task": (["S,dataset,accuracy,n_tokens", *(f"{s},arc,{0.25 + 0.1 * at},1000" for at, s in enumerate(S))], {}),
    "attempts": (
        [
            "S,dataset,item,n_samples,n_correct",
            *(f"{s},math,q{item},50,{right(s, item)}" for s in S for item in range(30)),
        ],
        {},
    ),
    "one size": (["S,dataset,loss_nats", "1e9,c4,2.5"], {}),
    "13 groups": (
        [
            "S,family,dataset,loss_nats",
            *(f"{s},fam{at},c4,{loss(s, 1e12, 1.7 + at / 50)}" for at in range(13) for s in S),
        ],
        {},
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def of_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A page, and how many rows were imported."""
    lines, keys = KINDS[request.param]
    place = tmp_path_factory.mktemp("kind")
    store = imported(place / "store", "\n".join(lines))
    with connected_once():
        report = gather([(asked(store, resamples=40, **keys), None)])
    assert report.n_runs == len(report.runs.rows)
    (place / "page.html").write_text(page(report))
    return place / "page.html", len(lines) - 1


@pytest.mark.parametrize("width", [390, 1280])
def test_every_figure_is_drawn_and_nothing_complains(width: int, browser: Any, of_kind: tuple[Path, int]) -> None:
    visit = Visit(browser, of_kind[0], width)
    shown = visit.all_drawn()
    assert visit.wide_tables() == []
    places = "[...document.querySelectorAll('.plot')].filter(each => !each.querySelector('svg'))"
    assert shown.evaluate(f"{places}.map(each => each.dataset.of)") == []
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    outside = "!each.closest('svg, .scroll, pre, .hidden') && getComputedStyle(each).overflowX !== 'visible'"
    cut = f"filter(each => {outside} && each.scrollWidth > each.clientWidth + 1)"
    assert shown.evaluate(f"[...document.querySelectorAll('main *, header *')].{cut}.length") == 0
    assert visit.complaints == []
    visit.context.close()
