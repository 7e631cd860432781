"""The page of a text in a real browser, without a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visit, violations
from tests.support.commands import here
from tests.support.stores import Measured, columns_of, runs_by_size


@pytest.fixture(scope="module")
def page_file(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, cwd = tmp_path_factory.mktemp("view"), tmp_path_factory.mktemp("cwd")
    words = ("view", "doc=6", "--store", measured.store, "--format", "html", "--output", folder / "text.html")
    here(*words, cwd=cwd, check=0)
    return folder / "text.html"


@pytest.fixture
def visit(browser: Any, page_file: Path) -> Iterator[Visit]:
    visit = Visit(browser, page_file)
    yield visit
    assert visit.complaints == []
    assert [url for url in visit.asked if not url.startswith("file:")] == []
    visit.context.close()


def grades(store: Path, size: str) -> list[str]:
    run = columns_of(store / "runs" / runs_by_size(store)[size]["run_id"], "tokens")
    mine = run["doc_id"] == 6
    ranks = (run["greater"] + run["ties"] + 1)[mine]
    return [f"g{(rank > 1) + (rank > 10) + (rank > 100)}" for rank in ranks.tolist()]


def test_tokens_have_the_colours_of_their_ranks_at_every_size(visit: Visit, measured: Measured) -> None:
    page = visit.page
    read = "[...document.querySelectorAll('#text-a span')].map((token) => token.className)"
    assert page.evaluate(read) == grades(measured.store, "l")
    page.locator("#size-a").fill("0")
    assert page.locator("#name-a").text_content() == "mine/xs"
    assert page.evaluate(read) == grades(measured.store, "xs")


def test_a_token_tells_its_rank_under_every_model_and_keys_move_it(visit: Visit) -> None:
    page = visit.page
    page.locator("#text-a span").nth(2).hover()
    assert "probability" in page.locator("#token p").text_content()
    assert page.locator("#token table tr").first.locator("td").count() == 4
    page.locator("#text-a").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('.now').dataset.i") == "3"
    page.keyboard.press("ArrowDown")
    assert page.locator("#name-a").text_content() == "mine/m"
    page.get_by_label("a second model beside it").check()
    assert page.locator("#panel-b").is_visible()
    page.get_by_label("nats").check()
    assert "nats" in page.locator("#legend").text_content()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_all_can_read_it(scheme: str, width: int, browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, width, scheme)
    visit.page.get_by_label("a second model beside it").check()
    visit.page.locator("#text-a span").nth(2).hover()
    assert violations(visit.page) == []
    assert visit.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    visit.context.close()
