"""Constants that are given: in every format, and in predictions in size and tokens."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support import given
from tests.support.asking import ask, imported
from tests.support.commands import here

C4 = {"family": "plain", "dataset": "c4", "S": [1e11], "D": [1e11], "resamples": 40}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("given") / "store", given.table(), family=None)


@pytest.mark.parametrize("form", ["csv", "md", "tex", "html"])
def test_what_is_given_is_told_in_every_format(store: Path, form: str, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / f"page.{form}"
    words = ("predict", "family=plain", "dataset=pile", "E=1.7", "S=1e11", "resamples=40", "--store", store)
    here(*words, "--format", form, "--output", output, cwd=cwd, check=0)
    told = output.read_text()
    if form == "csv":
        found = [row for row in csv.DictReader(io.StringIO(told)) if row["kind"] == "constant"]
        assert [row["given"] for row in found] == ["given", "free", "lower end", "upper end"]
    else:
        assert "What the given constants do" in told


def test_points_of_size_and_tokens_take_constants_of_their_form(store: Path) -> None:
    found = ask(store, "predict", **C4, E="1.7")
    assert {row["method"] for row in found.of_kind("prediction")} == {"combined", "chinchilla"}
    assert [row["given"] for row in found.of_kind("constant")] == ["given", "free", "lower end", "upper end"]


def test_a_point_that_rests_on_a_constant_that_the_trainings_refuse_does_not_pass(store: Path) -> None:
    for E, is_refused in (("1", True), ("1.7", False)):
        found = ask(store, "predict", **C4, E=E).of_kind("prediction")
        (answer,) = [row for row in found if row["method"] == "combined"]
        assert ("given_refused" in answer["reasons"]) == is_refused


def test_a_surface_takes_constants_of_its_form(store: Path, cwd: Path) -> None:
    (surface,) = ask(
        store, "surface", family="plain", dataset="c4", resamples=25, pin={"E": "1.7", "alpha": "0.34"}
    ).rows
    assert (surface["E"], surface["alpha"]) == pytest.approx((1.7, 0.34), rel=1e-9)
    assert surface["beta"] == pytest.approx(0.29, abs=0.02)
    assert set(surface["params"]["pins"]) == {"E", "alpha"}
    shown = json.loads(here("show", surface["fit_id"], "--store", store, cwd=cwd, check=0).stdout)
    assert shown["reproduced"]["largest_relative_difference"] < 1e-6
