"""The page in a real browser, without a network: it answers the pointer, sorts, saves, and all can read it."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visit, violations
from tests.support.reports import read, report, store_of

LAWS = "drawn-on-prose-fit-laws-table"


@pytest.fixture(scope="module")
def page_file(place: Path) -> Path:
    """The report of four sizes on two texts."""
    report(store_of(place.parent / "store"), place.parent / "page.html", place, "k=[1,10,100]")
    return place.parent / "page.html"


def test_it_answers_the_pointer_sorts_saves_all_digits_and_opens_what_is_folded(
    browser: Any, page_file: Path, tmp_path: Path
) -> None:
    visit, tables = Visit(browser, page_file), read(page_file.read_text()).tables
    page, name = visit.all_drawn(), "drawn-on-prose-fit-laws"
    mark = page.locator(f"#{name} .mark-symbol.role-mark path").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    tip, first = page.locator("#tip").inner_text(), tables[f"{name}-values"][0]
    assert [each for each in (first["size"], f"{float(first['y']):.4g}") if each not in tip] == []
    assert "null" not in tip
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()

    page.evaluate(f"document.querySelector('.sheet:has(#{LAWS})').open = true")
    known = [float(row["alpha"]) for row in tables[LAWS] if row["alpha"]]
    table = page.locator(f".sheet:has(#{LAWS}) table")
    heading = table.locator("thead th").nth(1)
    for order, reverse in (("ascending", False), ("descending", True)):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == order
        shown = table.locator("tbody tr td:nth-child(2)").all_inner_texts()
        expected = [f"{value:.4f}".replace("-", "−") for value in sorted(known, reverse=reverse)]
        assert shown == [*expected, *["–"] * (len(shown) - len(known))]

    with page.expect_download() as download:
        page.locator(f".sheet:has(#{LAWS}) button[data-file]").click()
    download.value.save_as(tmp_path / "laws.csv")
    rows = {(row["law"], row["k"]): row for row in csv.DictReader((tmp_path / "laws.csv").open(newline=""))}
    assert len(rows) == len(tables[LAWS]) == 4
    for row in tables[LAWS]:
        law, k, _ = row["law|k|method"].split("|")
        assert [rows[law, k][column] for column in ("alpha", "C")] == [row["alpha"], row["C"]]

    page.evaluate("for (const fold of document.querySelectorAll('details.chapter')) fold.open = false")
    page.locator("nav a", has_text="drawn on code").first.click()
    chapters = [page.locator(f"#drawn-on-{text}") for text in ("code", "prose")]
    assert [each.get_attribute("open") is not None for each in chapters] == [True, False]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.chapter:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert chapters[1].get_attribute("open") is None
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) > 3
    assert visit.complaints == []
    visit.context.close()


def test_the_theme_is_the_readers_and_is_remembered_and_names_and_contrast_pass_an_automated_check(
    browser: Any, page_file: Path
) -> None:
    def colours(page: Any) -> list[str]:
        line = "document.querySelector('#drawn-on-prose-fit-laws .mark-line path')"
        of = ("document.body).backgroundColor", f"{line}).stroke")
        return [page.evaluate(f"getComputedStyle({each}") for each in of]

    visit = Visit(browser, page_file, 390, "dark")
    page, beside = visit.all_drawn(), {"exclude": [["#drawn-on-code"]]}  # a second text has nothing but other numbers
    dark = colours(page)
    assert not page.evaluate("document.querySelector('nav details').open")
    assert violations(page, beside) == []
    page.get_by_role("button", name="Light").click()
    light = colours(page)
    assert all(one != other for one, other in zip(dark, light, strict=True))
    assert violations(page, beside) == []
    page.reload()
    assert colours(visit.all_drawn())[0] == light[0]
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "false"
    assert visit.complaints == []
    visit.context.close()


def test_without_a_script_the_numbers_are_there(browser: Any, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert "Figures are drawn by JavaScript, which is off here" in page.locator("header").inner_text()
    assert page.locator(f".sheet:has(#{LAWS}) tbody tr").count() == 4
    context.close()
