"""The page in a real browser, without a network: it draws, answers the pointer, sorts, saves, and all can read it."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visit, violations
from tests.support.commands import here
from tests.support.reports import FAST, SIZES, read, report, store_of
from tests.support.synthetic import Truth

LAWS = "drawn-on-prose-fit-laws-table"


@pytest.fixture(scope="module")
def page_file(place: Path) -> Path:
    """The report of four sizes on two texts."""
    truths = {"prose": Truth(S=SIZES[:4]), "code": Truth(S=SIZES[:4], alpha=0.14)}
    store_of(place.parent / "store", texts=truths, n=20)
    report(place.parent / "store", place.parent / "page.html", place, "k=[1,10,100]")
    return place.parent / "page.html"


@pytest.fixture
def visit(browser: Any, page_file: Path) -> Iterator[Visit]:
    visit = Visit(browser, page_file)
    visit.page.evaluate(f"document.querySelector('.sheet:has(#{LAWS})').open = true")
    yield visit
    visit.context.close()


def test_pointing_at_a_point_shows_its_values(visit: Visit, page_file: Path) -> None:
    page = visit.all_drawn()
    name = "drawn-on-prose-fit-cross_entropy"
    mark = page.locator(f"#{name} .mark-symbol.role-mark path").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    tip = page.locator("#tip")
    assert tip.is_visible()
    first = read(page_file.read_text()).tables[f"{name}-values"][0]
    shown = tip.inner_text()
    assert first["size"] in shown
    assert f"{float(first['nats']):.4g}" in shown
    assert "null" not in shown
    page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(visit: Visit, page_file: Path) -> None:
    page = visit.page
    table = page.locator(f".sheet:has(#{LAWS}) table")
    known = [float(row["alpha"]) for row in read(page_file.read_text()).tables[LAWS] if row["alpha"]]
    assert known != sorted(known)

    def column() -> list[str]:
        return list(table.locator("tbody tr td:nth-child(2)").all_inner_texts())

    heading = table.locator("thead th").nth(1)
    for order, reverse in (("ascending", False), ("descending", True)):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == order
        expected = [f"{value:.4f}".replace("-", "−") for value in sorted(known, reverse=reverse)]
        assert column() == [*expected, *["–"] * (len(column()) - len(known))]
    table.locator("thead th").nth(0).locator("button").click()
    assert heading.get_attribute("aria-sort") is None


def test_a_table_is_saved_as_csv_with_more_digits_than_are_shown(visit: Visit, place: Path, tmp_path: Path) -> None:
    with visit.page.expect_download() as download:
        visit.page.locator(f".sheet:has(#{LAWS}) button.csv").click()
    download.value.save_as(tmp_path / "laws.csv")
    assert download.value.suggested_filename == f"{LAWS}.csv"
    with (tmp_path / "laws.csv").open(newline="") as file:
        rows = {(row["law"], row["k"]): row for row in csv.DictReader(file)}
    answer = here(
        "fit", FAST, "k=[1,10,100]", "--store", place.parent / "store", "--format", "json", cwd=place, check=0
    )
    kept = [row for row in json.loads(answer.stdout) if row["dataset"] == "prose"]
    assert len(kept) == len(rows) >= 9
    for row in kept:
        saved = rows[row["law"], "" if row["k"] is None else str(row["k"])]
        for name in ("alpha", "alpha_lo", "alpha_hi", "r2", "C"):
            assert (float(saved[name]) if saved[name] else None) == pytest.approx(row[name], rel=1e-6)


def ground(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def curve_colour(page: Any) -> str:
    line = "#drawn-on-prose-fit-cross_entropy .mark-line path"
    return str(page.evaluate(f"getComputedStyle(document.querySelector('{line}')).stroke"))


def test_the_theme_is_that_of_the_reader_can_be_switched_and_is_remembered(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, scheme="dark")
    page = visit.all_drawn()
    dark = ground(page), curve_colour(page)
    page.get_by_role("button", name="Light").click()
    light = ground(page), curve_colour(page)
    assert all(one != other for one, other in zip(dark, light, strict=True))
    page.reload()
    assert ground(page) == light[0]
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "false"
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_names_and_contrast_pass_an_automated_check(scheme: str, width: int, browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, width, scheme)
    page = visit.all_drawn()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert visit.wide_tables() == []
    beside = {"exclude": [["#drawn-on-code"]]}  # a second text has nothing but other numbers
    assert violations(page, beside) == []
    visit.context.close()


def test_a_phone_needs_no_scrolling_sideways(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, width=390)
    page = visit.all_drawn()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert not page.evaluate("document.querySelector('nav details').open")
    wide = page.evaluate("[...document.querySelectorAll('.plot svg')].filter(s => s.clientWidth > 390).length")
    assert wide == 0
    assert visit.complaints == []
    visit.context.close()


def test_a_link_opens_what_is_folded_and_paper_shows_all(visit: Visit) -> None:
    page = visit.all_drawn()
    page.evaluate("for (const fold of document.querySelectorAll('details.chapter')) fold.open = false")
    page.locator("nav a", has_text="drawn on code").first.click()
    assert page.locator("#drawn-on-code").get_attribute("open") is not None
    assert page.locator("#drawn-on-prose").get_attribute("open") is None
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.chapter:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#drawn-on-prose").get_attribute("open") is None
    written = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", written)) > 3


def test_without_a_script_the_numbers_are_there(browser: Any, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert "Figures are drawn by JavaScript, which is off here" in page.locator("header").inner_text()
    assert page.locator(f".sheet:has(#{LAWS}) tbody tr").count() >= 9
    context.close()
