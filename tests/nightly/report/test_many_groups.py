"""The report of more groups than anybody reads one by one: a table and figures of all, sections where asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visit
from tests.support.commands import here
from tests.support.reports import FAST, read, report, store_of, words_of
from tests.support.synthetic import Truth

FAMILIES = tuple(f"drawn{at}" for at in range(7))
TEXTS = {"prose": Truth(S=(1_000, 10_000, 100_000)), "code": Truth(S=(1_000, 10_000, 100_000), alpha=0.14)}
WORDS = ("k=[1,10]", "laws=[rbp,cross_entropy]")


@pytest.fixture(scope="module")
def store(place: Path) -> Path:
    """Seven families on two texts."""
    return store_of(place.parent / "many", FAMILIES, TEXTS, n=8)


@pytest.fixture(scope="module")
def text(store: Path, place: Path) -> str:
    return report(store, place.parent / "many.html", place, *WORDS)


def test_a_page_of_many_groups_leads_with_all_of_them_and_has_no_sections(text: str) -> None:
    page = read(text)
    groups = [f"{family} on {text}" for family in FAMILIES for text in ("code", "prose")]
    assert [row["group"] for row in page.tables["glance"]] == groups
    assert list(page.figures) == ["laws-across", "exponents-across"]
    assert "python -m rbpx report group=drawn0-on-code" in words_of(text)
    assert "Across texts and families" not in words_of(text)


def test_figures_across_have_the_numbers_of_fit(text: str, store: Path, place: Path) -> None:
    words = ("fit", FAST, *WORDS, "--format", "json", "--store", store)
    rows = json.loads(here(*words, cwd=place, check=0).stdout)
    fits: dict[tuple[str, str], dict[str, Any]] = {
        (f"{row['family']} on {row['dataset']}", row["law"]): row for row in rows if row["k"] in (1, None)
    }
    page = read(text)
    for row in page.tables["exponents-across-values"]:
        for column, law in (("alpha_rbp", "rbp"), ("alpha_ce", "cross_entropy")):
            fit = fits[row["group"], law]
            assert float(row[column]) == pytest.approx(fit["alpha"], rel=1e-6)
            ends = [float(end) for end in row[f"{column}_lo {column}_hi".replace(" ", "|")].split("|")]
            assert ends == pytest.approx([fit["alpha_lo"], fit["alpha_hi"]], rel=1e-6)
    for name in FAMILIES:
        fit, of = fits[f"{name} on code", "rbp"], f"{name} on code"
        line = [
            (float(r["S"].replace(",", "")), float(r["y"]))
            for r in page.tables["laws-across-values"]
            if r["group"] == of
        ]
        assert (line[0][0], line[-1][0]) == pytest.approx((1_000, 100_000))
        assert [y for _, y in line] == pytest.approx([fit["C"] * S ** -fit["alpha"] for S, _ in line], rel=1e-4)
    asked = here("sql", page.figures["laws-across"].sql, "--format", "json", "--store", store, cwd=place, check=0)
    found = {row["fit_id"]: row["alpha"] for row in json.loads(asked.stdout)}
    assert found == {row["fit_id"]: row["alpha"] for row in fits.values()}


@pytest.mark.parametrize("name", ["drawn3-on-code", "drawn3 on code", "[drawn3-on-code,drawn1-on-prose]"])
def test_sections_are_of_the_groups_that_are_asked_for(name: str, store: Path, place: Path) -> None:
    page = report(store, place.parent / f"{name}.html", place, *WORDS, f"group={name}")
    with_sections = {anchor.partition("-fit-")[0] for anchor in read(page).figures if "-fit-" in anchor}
    both = name.startswith("[")
    assert with_sections == ({"drawn3-on-code", "drawn1-on-prose"} if both else {"drawn3-on-code"})
    assert len(read(page).tables["glance"]) == 14
    alone = report(store, place.parent / "alone.html", place, *WORDS, "family=drawn3", "dataset=code")
    tables = {name: rows for name, rows in read(alone).tables.items() if name.startswith("drawn3-on-code-")}
    assert len(tables) > 5
    assert tables.items() <= read(page).tables.items()


def test_a_group_that_is_not_there_is_one_line(store: Path, place: Path) -> None:
    words = ("report", FAST, *WORDS, "group=drawn3-on-cod", "--store", store, "--output", place.parent / "no.html")
    answer = here(*words, cwd=place, check=2)
    assert answer.stderr == (
        "rbpx: group=drawn3-on-cod is none of 14 groups; did you mean drawn3-on-code? known: drawn0-on-code, "
        "drawn0-on-prose, drawn1-on-code, ... or all\n"
    )


def test_all_groups_have_sections_where_all_are_asked_for(store: Path, place: Path) -> None:
    words = ("family=[drawn0,drawn1]", "group=all")
    page = read(report(store, place.parent / "all.html", place, *WORDS, *words))
    plain = read(report(store, place.parent / "plain.html", place, *WORDS, words[0]))
    assert page.tables == plain.tables
    assert "drawn1-on-prose-fit-rbp" in page.figures


@pytest.mark.parametrize("form", ["md", "tex", "svg"])
def test_other_formats_have_the_table_and_the_figures_of_all(form: str, store: Path, place: Path) -> None:
    output = place.parent / f"many_{form}"
    here("report", FAST, *WORDS, "--format", form, "--output", output, "--store", store, cwd=place, check=0)
    if form == "svg":
        assert {path.stem for path in output.glob("*.svg")} == {"laws-across", "exponents-across"}
    else:
        assert all(family in output.read_text() for family in FAMILIES)


def test_the_figures_of_all_are_drawn(text: str, browser: Any, place: Path) -> None:
    visit = Visit(browser, place.parent / "many.html")
    page = visit.all_drawn()
    assert page.locator("#laws-across .plot svg, #exponents-across .plot svg").count() == 2
    assert page.locator("#laws-across .mark-line path").count() == len(FAMILIES) * 2
    assert visit.complaints == []
    visit.context.close()
