"""Every number of every table lies inside its own interval: rows of all questions, walked through column by column.

A column X has an interval where there are X_lo and X_hi beside it, or beside the params that hold them; where there are
lo and hi alone, they are of the column value or y. None says that an end is not known, or open.
"""

import itertools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rbpx.questions.registry import analyses, asking
from tests.support.checkpoints import TINY_TEXT
from tests.support.commands import here
from tests.support.stores import Measured, write_jsonl

WORDS = {
    "outcomes": ["n=[1,2,5]"],
    "emergence": ["n=[1,2,5]"],
    "predict": ["S=[1e6,1e9]"],
    "compare": ["mine/xs", "mine/l"],
    "multiplier": ["theirs", "others"],
    "surface": ["source=grid"],
    "trajectory": ["source=grid"],
    "items": ["dataset=quiz"],
    "downstream": ["dataset=quiz", "k=1", "features=[cross_entropy,rbp]"],
}
WITHOUT = ("view",)  # it shows tokens
VERBS = [verb for verb, question in analyses().items() if not question.measures and verb not in WITHOUT]
PLAIN = ("value", "y")
ROUNDING = 1e-9


class Place(NamedTuple):
    """A number with its interval, and the way to it from the row."""

    path: str
    value: float
    lo: float
    hi: float

    @property
    def is_inside(self) -> bool:
        slack = ROUNDING * max(abs(self.value), abs(self.lo), abs(self.hi))
        return self.lo - slack <= self.value <= self.hi + slack


def numbers_with_intervals(of: Any, path: str = "", above: dict[str, Any] | None = None) -> Iterator[Place]:
    """Each number with both ends, at any depth; ends inside params may belong to a number beside the params."""
    if isinstance(of, list):
        for at, each in enumerate(of):
            yield from numbers_with_intervals(each, f"{path}[{at}]", above)
    if not isinstance(of, dict):
        return
    known = {**(above or {}), **of}
    for name in of:
        if name == "lo" or name.endswith("_lo"):
            stem = name[:-2]
            own = stem.rstrip("_") or next((each for each in PLAIN if each in of), "value")
            value, lo, hi = known.get(own), of[name], of.get(f"{stem}hi")
            if all(isinstance(number, int | float) for number in (value, lo, hi)):
                yield Place(f"{path}.{own}", value, lo, hi)
    for name, inner in of.items():
        beside = {key: value for key, value in of.items() if not isinstance(value, dict | list)}
        yield from numbers_with_intervals(inner, f"{path}.{name}", beside if name == "params" else None)


@pytest.fixture(scope="module")
def busy(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family with ties, measured on two texts, and two imported ones on three, one of them without any law."""
    place = tmp_path_factory.mktemp("busy")
    store, cwd, table = Path(shutil.copytree(measured.store, place / "store")), place / "cwd", place / "theirs.csv"
    cwd.mkdir()
    text = write_jsonl(place / "other.jsonl", *(f"{line} {line[::-1]}" for line in TINY_TEXT[2:]))
    here("measure", *measured.family.words(text=text), "dataset.name=other", "--store", store, cwd=cwd, check=0)
    losses = {"one": [3.1, 2.7, 2.45, 2.3, 2.22], "two": [2.9, 2.6, 2.3, 2.2, 2.0], "three": [2.0, 2.4, 1.9, 2.1, 2.0]}
    lines = [
        f"{family},{text},{10**n},{10**n},1,{math.exp(-y)},{y}"
        for family, apart in (("theirs", 0.0), ("others", 0.1))
        for text, ys in losses.items()
        if text != "three" or family == "theirs"
        for n, y in enumerate((y + apart * math.cos(y * n) for n, y in enumerate(ys)), 4)
    ]
    table.write_text("\n".join(["family,dataset,size,S,k,rbp,cross_entropy_nats", *lines]))
    here("import", table, "source=them", "ties=pessimistic", "--store", store, cwd=cwd, check=0)
    _import_grid(place / "grid.csv", store, cwd)
    quiz = [{"q": f"{line[:40]} is", "answers": [" sea", " salt", " rope"], "right": n % 3} for n, line in ITEMS]
    (place / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in quiz))
    about = ("dataset.context=[q]", "dataset.choices=answers", "dataset.right=right", "dataset.name=quiz")
    here("measure", *measured.family.words(text=place / "quiz.jsonl"), *about, "--store", store, cwd=cwd, check=0)
    here("predict", "family=theirs", "dataset=one", "S=1e10", "register=june", "--store", store, cwd=cwd, check=0)
    return store


ITEMS = list(enumerate(TINY_TEXT[2:] * 2))


def _import_grid(path: Path, store: Path, cwd: Path) -> None:
    """Trainings of five sizes and five numbers of tokens, as a table of losses."""
    wiggle = itertools.cycle((0.004, -0.006, 0.001, 0.005, -0.003, -0.002, 0.003))
    rows = [
        (f"s{S:.0e}", S, D, (1.7 + 400 * S**-0.34 + 410 * D**-0.28) * (1 + next(wiggle)))
        for S in (1e6, 3e6, 1e7, 3e7, 1e8)
        for D in (2e7, 6e7, 2e8, 6e8, 2e9)
    ]
    lines = [f"grid,text,{size},{S:.0f},{D:.0f},{y}" for size, S, D, y in rows]
    path.write_text("\n".join(["family,dataset,size,S,D,loss_nats", *lines]))
    here("import", path, "source=grid", "--store", store, cwd=cwd, check=0)


def few(verb: str) -> list[str]:
    return ["resamples=30"] if "resamples" in asking(verb).keys else []


@pytest.mark.parametrize("verb", VERBS)
def test_each_number_is_inside_its_interval(verb: str, busy: Path, cwd: Path) -> None:
    words = (verb, *WORDS.get(verb, []), *few(verb), "--store", busy, "--format", "json", "--details")
    rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
    places = [place for row in rows for place in numbers_with_intervals(row, _name(row))]
    assert places, "no interval in any row, so this says nothing"
    assert [place for place in places if not place.is_inside] == []


def test_what_is_kept_in_the_store_is_inside_its_interval(busy: Path, cwd: Path) -> None:
    for verb in ("gaps", "ranks"):  # those of the other questions are there where their tests ran before
        here(verb, *few(verb), "--store", busy, cwd=cwd, check=0)
    for relation in ("fits", "rank_fits"):
        words = ("sql", f"SELECT * FROM {relation}", "--store", busy, "--format", "json")
        rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
        rows = [row | {"params": json.loads(row["params"])} if isinstance(row["params"], str) else row for row in rows]
        places = [place for row in rows for place in numbers_with_intervals(row, _name(row))]
        assert places, relation
        assert [place for place in places if not place.is_inside] == [], relation


def test_the_walk_finds_a_number_outside_at_any_depth() -> None:
    row = {"alpha": 1.0, "alpha_lo": 0.5, "alpha_hi": None, "C": 3.0, "params": {"C_lo": 1.0, "C_hi": 2.0, "at": [{
        "value": 0.1, "lo": 0.0, "hi": 0.2}, {"value": 0.3, "lo": 0.0, "hi": 0.2}]}}  # fmt: skip
    outside = [place.path for place in numbers_with_intervals(row) if not place.is_inside]
    assert outside == [".params.C", ".params.at[1].value"]


def _name(row: dict[str, Any]) -> str:
    names = ("kind", "law", "distribution", "quantity", "method", "family", "dataset", "size", "k", "n", "token_id")
    return " ".join(str(row[name]) for name in names if row.get(name) is not None)
