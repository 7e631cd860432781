"""Reports of every kind of store, in a real browser: each figure is drawn, nothing complains or is too wide."""

from pathlib import Path
from typing import Any, Final

import altair
import numpy as np
import pytest

from rbpx.report.contents import gather
from rbpx.report.page import page
from rbpx.report.texts import latex
from rbpx.store.sql import connected_once
from tests.support.asking import imported
from tests.support.asking import request as asked
from tests.support.browser import Visit
from tests.support.reports import read

S: Final = (3e7, 1e8, 3e8, 1e9, 3e9)
D: Final = (2e9, 8e9, 3e10, 1e11)
VARIANTS: Final = (("ours", 1.7), ("b", 1.75))


def loss(size: float, tokens: float, E: float = 1.7) -> str:
    """A loss that scatters about its law."""
    off = 0.002 * np.sin(1000 * np.log(size) + 77 * np.log(tokens))
    return repr(float((E + 400 * size**-0.34 + 400 * tokens**-0.28) * np.exp(off)))


def right(size: float, item: int) -> int:
    """Of 50 attempts."""
    return round(50 * min(0.9, (item + 1) / 60 * (size / 3e9) ** 0.3))


PAIRS: Final = [(s, d) for s in S for d in D]
KINDS: Final = {
    "along D": ("S,D,loss_nats", [f"1e9,{d},{loss(1e9, d)}" for d in D]),
    "in S and D": ("S,D,loss_nats", [f"{s},{d},{loss(s, d)}" for s, d in PAIRS]),
    "variants": ("S,D,variant,loss_nats", [f"{s},{d},{v},{loss(s, d, E)}" for v, E in VARIANTS for s, d in PAIRS]),
    "a task": ("S,accuracy,n_tokens", [f"{s},{0.25 + 0.1 * at},1000" for at, s in enumerate(S)]),
    "shares": ("S,k,ties,rbp", [f"{s},{k},mid,{np.exp(-3 * s**-0.1 * k**-0.3)}" for s in S for k in (1, 3, 10)]),
    "attempts": ("S,item,n_samples,n_correct", [f"{s},q{at},50,{right(s, at)}" for s in S for at in range(30)]),
    "one size": ("S,loss_nats", ["1e9,2.5"]),
    "13 groups": ("S,family,loss_nats", [f"{s},fam{at},{loss(s, 1e12, 1.7 + at / 50)}" for at in range(13) for s in S]),
}
KEYS: Final[dict[str, dict[str, Any]]] = {"in S and D": {"axis": "C"}, "shares": {"ties": "mid"}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_drawn_by_its_schema_nothing_is_too_wide_and_texts_are_whole(
    kind: str, browser: Any, tmp_path: Path
) -> None:
    head, rows = KINDS[kind]
    table = "\n".join([f"dataset,{head}", *(f"<b>&d (page),{row}" for row in rows)])
    with connected_once():
        report = gather([(asked(imported(tmp_path / "store", table), resamples=40, **KEYS.get(kind, {})), None)])
    assert report.n_runs == len(report.runs.rows)
    (tmp_path / "page.html").write_text(text := page(report))
    assert "<b>&d" not in text
    for figure in read(text).figures.values():
        altair.LayerChart.from_dict(figure.spec, validate=True)
    for line in latex(report).splitlines():
        bare = line.replace(r"\%", "").replace(r"\$", "").split("%")[0]
        assert (bare.count("{"), bare.count("$") % 2) == (bare.count("}"), 0), line
    visit = Visit(browser, tmp_path / "page.html", 390)
    shown = visit.all_drawn()
    assert visit.wide_tables() == []
    assert visit.blank() == []
    for width in (390, 1280):
        shown.set_viewport_size({"width": width, "height": 900})
        assert shown.evaluate("document.documentElement.scrollWidth") == width
    outside = "!each.closest('svg, .scroll, pre, .hidden') && getComputedStyle(each).overflowX !== 'visible'"
    cut = f"filter(each => {outside} && each.scrollWidth > each.clientWidth + 1)"
    assert shown.evaluate(f"[...document.querySelectorAll('main *, header *')].{cut}.length") == 0
    assert visit.complaints == []
    visit.context.close()
