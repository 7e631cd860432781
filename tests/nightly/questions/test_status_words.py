"""A status has one word wherever people read, and its value where programs do."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.commands import here
from tests.support.once import answered_once
from tests.support.reports import read
from tests.support.synthetic import TrueSurface, write_surface

WORDS: Final = {  # by what csv and json say
    "ok": "passes",
    "bends": "bends",
    "no_trend": "no trend",
    "not_monotone": "turns",
    "backtest_failed": "failed",
    "intervals_missed": "narrow",
    "barely_determined": "barely",
    "collinear_design": "collinear",
    "beyond": "beyond",
}
SIZES: Final = (1e6, 4e6, 2e7, 1e8, 5e8, 2e9)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Losses that obey a law, that do so to a hundredth, that turn round, and that stop falling."""
    folder = tmp_path_factory.mktemp("words")
    losses = {
        "lawful": [9 * S**-0.05 * (1 + 0.004 * (-1) ** at) for at, S in enumerate(SIZES)],
        "narrow": [4 * S**-0.13 * (1 + 0.006 * (-1) ** at) for at, S in enumerate(SIZES)],
        "turning": [3.0, 2.5, 2.3, 2.35, 2.6, 3.1],
        "stopping": [4.0, 3.2, 2.56, 2.05, 1.64, 2.2],
    }
    rows = [
        {"model": f"{text}-{S:g}", "S": S, "dataset": text, "loss_nats": y}
        for text, values in losses.items()
        for S, y in zip(SIZES, values, strict=False)
    ]
    (folder / "points.json").write_text(json.dumps(rows))
    words = ("source=drawn", "family=drawn", "ties=pessimistic")
    here("import", folder / "points.json", "--store", folder / "store", *words, cwd=folder, check=0, writes=True)
    return folder / "store"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid of trainings, and one training with its states, in which size and tokens cannot be told apart."""
    store = tmp_path_factory.mktemp("trained") / "store"
    truth = TrueSurface(S=(10_000, 80_000, 640_000, 5_120_000), D=(10**6, 10**7, 10**8))
    write_surface(store, truth, 1, n_documents=40, n_tokens=250)
    pairs = [(40_000, 10**6 * 2**at) for at in range(6)]
    write_surface(store, truth, 2, 40, 250, family="long", pairs=pairs, states=True)
    return store


@pytest.mark.parametrize(
    ("store", "words", "among"),
    [
        ("imported", ("fit",), {"ok", "no_trend", "backtest_failed"}),
        ("imported", ("predict", "S=1e10"), {"ok", "no_trend"}),
        ("trained", ("surface", "laws=[cross_entropy,rbp]", "k=1", "budgets=[1e13]"), {"ok", "collinear_design"}),
    ],
    ids=["fit", "predict", "surface"],
)
def test_people_read_its_word_and_programs_its_value(
    store: str, words: tuple[str, ...], among: set[str], request: pytest.FixtureRequest, cwd: Path, tmp_path: Path
) -> None:
    place: Path = request.getfixturevalue(store)
    with answered_once():
        asked = {
            form: _asked(place, words, form, cwd, tmp_path) for form in ("csv", "json", "table", "md", "tex", "html")
        }
    tables: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(asked.pop("csv"))))
    records = json.loads(asked.pop("json"))
    values = {row["status"] for row in records if row.get("status")}
    assert among <= values <= WORDS.keys()
    assert {row["status"] for row in tables if row["status"]} == values
    for form, text in asked.items():
        for value in values:
            assert re.search(rf"\b{WORDS[value]}\b", text), (form, value)
            assert WORDS[value] == value or not re.search(rf"\b{value}\b", text), (form, value)


def test_a_figure_says_the_word_where_a_point_is_pointed_at(trained: Path, cwd: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    asked = ("regimes", "family=grid", "resamples=50", "--store", trained, "--format", "html", "--output", page)
    here(*asked, cwd=cwd, check=0, writes=True)
    drawn = [figure.spec for name, figure in read(page.read_text()).figures.items() if name.endswith("-alpha")]
    points = [layer for spec in drawn for layer in spec["layer"] if "tooltip" in layer["encoding"]]
    tips = [tip["field"] for layer in points for tip in layer["encoding"]["tooltip"]]
    rows = [row for layer in points for row in csv.DictReader(io.StringIO(layer["data"]["values"]))]
    assert "status" in tips
    shown = {row["status"] for row in rows}
    assert {"passes"} < shown <= {*WORDS.values()}


def _asked(store: Path, words: tuple[str, ...], form: str, cwd: Path, folder: Path) -> str:
    page = folder / "page.html"
    more = ("--output", page) if form == "html" else ()
    line = (*words, "resamples=50", "--format", form, "--store", store, *more)
    printed = here(*line, cwd=cwd, env={"COLUMNS": "80"}, check=0, writes=bool(more)).stdout
    text = (
        re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page.read_text(), flags=re.S) if form == "html" else printed
    )
    return text.replace("\\_", "_")
