"""Constants given on the command line: fit, predict, surface and multiplier, in every format."""

import csv
import io
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.commands import here

E, ALPHA = 1.7, 0.34


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families of losses from one E, the second twice as good as the first at each size."""
    folder = tmp_path_factory.mktemp("given")
    random = Random(1)
    lines = ["family,S,D,dataset,loss_nats"]
    for family, C in (("plain", 400.0), ("better", 400.0 * 2**-ALPHA)):
        for at in range(6):
            for D in (1e9, 4e9, 16e9):
                S = 1e7 * 4**at
                loss = (E + C * S**-ALPHA + 300 * D**-0.29) * math.exp(random.gauss(0, 0.002))
                lines.append(f"{family},{S:.0f},{D:.0f},c4,{loss!r}")
        for at in range(6):
            S = 1e7 * 4**at
            lines.append(f"{family},{S:.0f},,pile,{(E + C * S**-ALPHA) * math.exp(random.gauss(0, 0.002))!r}")
    (folder / "cwd").mkdir()
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    here("import", folder / "runs.csv", "source=them", "--store", folder / "store", cwd=folder / "cwd", check=0)
    return folder


def ask(of: Path, *words: object, check: int = 0) -> str:
    answer = here(*words, "resamples=40", "--store", of / "store", cwd=of / "cwd", check=check)
    return answer.stdout if check == 0 else answer.stderr


def rows(of: Path, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(of, *words, "--format", "json"))
    return found


ON_PILE = ("family=plain", "dataset=pile")
ON_C4 = ("family=plain", "dataset=c4")


def test_fit_pins_the_offset_of_cross_entropy_and_says_whether_the_points_object(imported: Path) -> None:
    (law,) = rows(imported, "fit", *ON_PILE, "E=1.7")
    assert (law["law"], law["method"]) == ("cross_entropy", "offset")
    assert law["params"]["E"] == 1.7
    assert law["alpha"] == pytest.approx(ALPHA, abs=0.01)
    (prior,) = rows(imported, "fit", *ON_PILE, "E=1.7 +- .05")
    (plain,) = rows(imported, "fit", *ON_PILE, "method=offset", "laws=[cross_entropy]")
    assert len({law["fit_id"], prior["fit_id"], plain["fit_id"]}) == 3
    assert prior["params"]["pins"]["E"]["sd"] == 0.05
    told = ask(imported, "fit", *ON_PILE, "E=1.7")
    assert "Constants that were given" in told
    assert "does not speak against 1.7" in told
    assert "speak against 1 (p = " in ask(imported, "fit", *ON_PILE, "E=1")


@pytest.mark.parametrize("form", ["csv", "md", "tex", "html"])
def test_what_is_given_is_told_in_every_format(imported: Path, form: str, tmp_path: Path) -> None:
    output = tmp_path / f"page.{form}"
    words = ("predict", *ON_PILE, "E=1.7", "S=1e11", "resamples=40", "--store", imported / "store")
    here(*words, "--format", form, "--output", output, cwd=imported / "cwd", check=0, writes=True)
    told = output.read_text()
    if form == "csv":
        found = [row for row in csv.DictReader(io.StringIO(told)) if row["kind"] == "constant"]
        assert [row["given"] for row in found] == ["given", "free", "lower end", "upper end"]
    else:
        assert "What the given constants do" in told


def test_predict_stands_beside_what_it_would_be_without_and_at_the_ends(imported: Path) -> None:
    found = rows(imported, "predict", *ON_PILE, "E=1.7 +- .03", "S=1e11")
    (answer,) = [row for row in found if row["kind"] == "prediction" and row["method"] == "combined"]
    beside = {row["given"]: row for row in found if row["kind"] == "constant"}
    assert beside["given"]["y"] == answer["y"]
    assert answer["lo"] < E + 400 * 1e11**-ALPHA < answer["hi"]
    (free,) = rows(imported, "predict", *ON_PILE, "laws=[cross_entropy]", "S=1e11", "method=offset")[:1]
    assert (beside["free"]["y"], beside["free"]["lo"]) == (free["y"], free["lo"])
    assert beside["lower end"]["at"] < beside["free"]["at"] < beside["upper end"]["at"]
    assert beside["lower end"]["y"] < beside["upper end"]["y"]


def test_what_rests_on_a_constant_that_the_points_refuse_does_not_pass(imported: Path) -> None:
    for words in (("fit", *ON_PILE), ("predict", *ON_PILE, "S=1e11"), ("predict", *ON_C4, "S=1e11", "D=1e11")):
        for E, is_refused in (("E=1", True), ("E=1.7", False)):
            found = [row for row in rows(imported, *words, E) if row.get("kind", "prediction") == "prediction"]
            found = [row for row in found if row["method"] == ("offset" if words[0] == "fit" else "combined")]
            assert found
            for row in found:
                reasons = row["reasons"] if "reasons" in row else row["params"]["reasons"]
                assert ("given_refused" in reasons) == is_refused, (words, E, row["method"])


def test_surfaces_and_points_of_size_and_tokens_take_constants_of_their_form(imported: Path) -> None:
    (surface,) = rows(imported, "surface", *ON_C4, "pin={E: 1.7, alpha: 0.34}")
    assert (surface["E"], surface["alpha"]) == pytest.approx((1.7, 0.34), rel=1e-9)
    assert surface["beta"] == pytest.approx(0.29, abs=0.02)
    assert set(surface["params"]["pins"]) == {"E", "alpha"}
    found = rows(imported, "predict", *ON_C4, "E=1.7", "S=1e11", "D=1e11")
    answers = [row for row in found if row["kind"] == "prediction"]
    assert {row["method"] for row in answers} == {"combined", "chinchilla"}
    assert [row["given"] for row in found if row["kind"] == "constant"] == ["given", "free", "lower end", "upper end"]
    shown = json.loads(here("show", surface["fit_id"], "--store", imported / "store", cwd=imported, check=0).stdout)
    assert shown["reproduced"]["largest_relative_difference"] < 1e-6


def test_a_multiplier_with_a_given_offset_stands_first(imported: Path) -> None:
    words = ("multiplier", "base=plain", "variant=better", "dataset=pile")
    overall = [row for row in rows(imported, *words, "E=1.7 +- .02") if row["kind"] == "overall"]
    assert [row["offset"] for row in overall] == ["given", "shared", "free", "none"]
    assert overall[0]["multiplier_lo"] < 2 < overall[0]["multiplier_hi"]
    assert 0 < overall[0]["p"] <= 1
    widths = [math.log(row["multiplier_hi"] / row["multiplier_lo"]) for row in overall[:2]]
    assert widths[0] < widths[1] * 1.2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", *ON_PILE, "E=5"), "E=5 is impossible: E is at least 0 and below "),
        (("fit", *ON_PILE, "E=a"), "E=a is not a constant; give a number, E=1.7, or a prior"),
        (("fit", *ON_PILE, "E=1.7 +- 0"), "is not a constant"),
        (("fit", *ON_PILE, "E=1.7", "laws=[cross_entropy,accuracy]"), "belongs to one law"),
        (("fit", *ON_PILE, "E=1.7", "pin={E: 1}"), "both give E"),
        (("fit", *ON_PILE, "E=1.7", "method=robust"), "no constant that can be given with method=robust"),
        (("fit", *ON_PILE, "pin={beta: 1}"), "beta=1 is no constant that can be given with method=ols"),
        (("fit", *ON_PILE, "pin=3"), "is not a mapping of constants"),
        (("surface", *ON_C4, "pin={alpha: 5}"), "alpha=5 is impossible: alpha is at least 0 and below 4"),
        (("surface", *ON_C4, "E=1.7", "form=kaplan"), "kaplan has no such constant"),
        (("surface", *ON_C4, "pin={N_c: 1e13 +- 1e12}", "form=kaplan"), "N_c can be pinned to a value"),
        (("predict", *ON_C4, "pin={gamma: 1}", "S=1e9", "D=1e9"), "gamma=1: no form has no such constant"),
        (("klaw", "E=1.7"), "E"),
    ],
)
def test_what_cannot_be_given_is_refused_in_one_line(imported: Path, words: tuple[str, ...], said: str) -> None:
    told = ask(imported, *words, check=2)
    assert said in told
    assert len(told.strip().splitlines()) == 1
