"""The report of more groups than anybody reads one by one: a table and figures of all, sections where asked for."""

import json
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.reports import FAST, read, report, store_of, words_of

FAMILIES = tuple(f"drawn{at}" for at in range(7))
WORDS = ("k=[1,10]", "laws=[rbp,cross_entropy]")


def test_figures_across_have_the_numbers_of_fit_and_sections_are_of_the_groups_that_are_asked_for(place: Path) -> None:
    store = store_of(place.parent / "many", FAMILIES, n=8)
    text = report(store, place.parent / "many.html", place, *WORDS)
    page = read(text)
    groups = [f"{family} on {text}" for family in FAMILIES for text in ("code", "prose")]
    assert [row["group"] for row in page.tables["glance"]] == groups
    assert list(page.figures) == ["laws-across", "exponents-across"]
    assert "python -m rbpx report group=drawn0-on-code" in words_of(text)
    fits = json.loads(here("fit", FAST, *WORDS, "--format", "json", "--store", store, cwd=place, check=0).stdout)
    fits = {(f"{row['family']} on {row['dataset']}", row["law"]): row for row in fits if row["k"] in (1, None)}
    for row in page.tables["exponents-across-values"]:
        for column, law in (("alpha_rbp", "rbp"), ("alpha_ce", "cross_entropy")):
            found = [row[column], *row[f"{column}_lo|{column}_hi"].split("|")]
            fit = fits[row["group"], law]
            assert [float(each) for each in found] == pytest.approx(
                [fit[name] for name in ("alpha", "alpha_lo", "alpha_hi")], rel=1e-6
            )
    asked = report(store, place.parent / "two.html", place, *WORDS, "group=[drawn3-on-code,drawn1 on prose]")
    anchors = {anchor.partition("-fit-")[0] for anchor in read(asked).figures if "-fit-" in anchor}
    assert (anchors, len(read(asked).tables["glance"])) == ({"drawn3-on-code", "drawn1-on-prose"}, 14)
