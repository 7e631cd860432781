"""Loss to loss in every format, of several quantities, and as it is kept."""

import re
from pathlib import Path

import pytest

from tests.support.asking import ask, imported
from tests.support.commands import here
from tests.support.losses import table

ON = "axis=cross_entropy@prose"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {"prose": {"loss_nats": "prose"}, "code": {"loss_nats": "code", "accuracy": "right"}}
    return imported(tmp_path_factory.mktemp("losses") / "store", table(), family=None, texts=texts)


def test_each_quantity_has_a_curve_of_each_family_and_one_of_all_and_they_are_kept(store: Path, cwd: Path) -> None:
    found = ask(store, "fit", dataset="code", axis="cross_entropy@prose").rows
    assert [(row["law"], row["family"]) for row in found] == [
        (law, family) for law in ("cross_entropy", "accuracy") for family in ("a", "b", "a + b")
    ]
    query = "SELECT count(*) n FROM fits WHERE axis = 'cross_entropy@prose'"
    assert here("sql", query, "--store", store, "--format", "csv", cwd=cwd, check=0).stdout.split() == ["n", "6"]


def test_a_prediction_from_families_that_differ_says_so(tmp_path: Path) -> None:
    texts = {"prose": {"loss_nats": "prose"}, "code": {"loss_nats": "code"}}
    store = imported(tmp_path / "store", table({"b": 1.1}), family=None, texts=texts)
    told = ask(store, "predict", dataset="code", axis="cross_entropy@prose", x=[2.5]).of_kind("prediction")
    assert ["families_differ" in row["reasons"] for row in told if row["family"] == "a + b"] == [True]


@pytest.mark.parametrize("verb", ["fit", "predict"])
@pytest.mark.parametrize("form", ["table", "csv", "md", "tex", "html"])
def test_every_format_has_it(verb: str, form: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / f"page.{form}"
    words = ["--output", str(file)] if form == "html" else []
    answer = here(verb, "dataset=code", ON, "--format", form, *words, "--store", store, cwd=cwd, check=0, writes=True)
    said = file.read_text() if form == "html" else answer.stdout
    assert re.search("cross.entropy", said)
    assert form == "html" or not re.search(r"\bnan\b|None", said)


def test_a_report_is_not_of_loss_to_loss(store: Path, cwd: Path) -> None:
    assert "is not of a report" in here("report", ON, "--store", store, cwd=cwd, check=2).stderr


def test_families_off_each_other_are_said_to_differ(tmp_path: Path) -> None:
    texts = {"prose": {"loss_nats": "prose"}, "code": {"loss_nats": "code"}}
    store = imported(tmp_path / "store", table({"b": 1.1}), family=None, texts=texts)
    found = ask(store, "fit", dataset="code", axis="cross_entropy@prose", laws=["cross_entropy"])
    fitted = {row["family"]: row for row in found.rows}
    assert fitted["a + b"]["params"]["shared"]["p"] < 0.05
    assert "families_differ" in fitted["a + b"]["params"]["reasons"]
    assert "families_differ" not in fitted["a"]["params"]["reasons"]
    assert "do not share one curve" in found.words
