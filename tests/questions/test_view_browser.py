"""The page of a text in a real browser, without a network."""

from pathlib import Path
from typing import Any

from tests.support.browser import Visit, violations
from tests.support.composed import here
from tests.support.stores import Measured, columns_of, runs_by_size


def grades(store: Path, size: str) -> list[str]:
    run = columns_of(store / "runs" / runs_by_size(store)[size]["run_id"], "tokens")
    ranks = (run["greater"] + run["ties"] + 1)[run["doc_id"] == 6]
    return [f"g{(rank > 1) + (rank > 10) + (rank > 100)}" for rank in ranks.tolist()]


def test_tokens_have_the_colours_of_their_ranks_at_every_size_and_all_can_read_them(
    browser: Any, measured: Measured, tmp_path: Path, cwd: Path
) -> None:
    words = ("view", "doc=6", "--store", measured.store, "--format", "html", "--output", tmp_path / "text.html")
    here(*words, cwd=cwd, check=0)
    visit = Visit(browser, tmp_path / "text.html")
    page = visit.page
    read = "[...document.querySelectorAll('#text-a span')].map((token) => token.className)"
    assert page.evaluate(read) == grades(measured.store, "l")
    page.locator("#size-a").fill("0")
    assert page.locator("#name-a").text_content() == "mine/xs"
    assert page.evaluate(read) == grades(measured.store, "xs")
    page.locator("#text-a span").nth(2).hover()
    assert "probability" in page.locator("#token p").text_content()
    assert page.locator("#token table tr").first.locator("td").count() == 4
    page.get_by_label("a second model beside it").check()
    assert page.locator("#panel-b").is_visible()
    assert violations(page) == []
    assert visit.complaints == []
    assert [url for url in visit.asked if not url.startswith("file:")] == []
    visit.context.close()
