"""The Python interface: what a notebook gets is what the command line prints, typed, and light to import."""

import csv
import importlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rbpx
from rbpx.api.keywords import requests
from rbpx.questions.registry import asking
from tests.support.commands import here
from tests.support.signatures import STUB, stub
from tests.support.synthetic import Truth, write_store

FEW = "resamples=60"
CELLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("fit", {"laws": ["rbp"], "k": np.array([10]), "method": "weighted"}, ["laws=[rbp]", "k=[10]", "method=weighted"]),
    ("gaps", {"slices": {"early": "position < 30"}, "k": (10,)}, ["slices={early: 'position < 30'}", "k=[10]"]),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts, five sizes each."""
    root = tmp_path_factory.mktemp("api") / "store"
    for seed, name in enumerate(("synthetic", "other")):
        write_store(root, Truth(scatter=0.01), seed=seed, n_documents=20, n_tokens=60, dataset=name)
    return root


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that names the texts of the store."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "dataset").mkdir()
    for name in ("synthetic", "other"):
        (folder / "dataset" / f"{name}.yaml").write_text(f"name: {name}\n")
    return folder


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "created_at"} for row in rows]


@pytest.fixture(scope="module")
def laws(store: Path) -> Any:
    """An answer about both texts, `other` first."""
    return rbpx.open(store).fit(k=[1, 10], laws=["rbp", "cross_entropy"], resamples=60)


def test_an_answer_has_the_numbers_that_the_verb_prints(store: Path, own: Path, cwd: Path) -> None:
    for verb, keys, words in CELLS:
        asked = (verb, *words, FEW, "--config-dir", own, "--store", store, "--format", "json")
        shown = json.loads(here(*asked, cwd=cwd, check=0).stdout)
        answer = getattr(rbpx.open(store, own), verb)(resamples=60, **keys)
        assert len(answer.records) > 0
        assert without_time(json.loads(json.dumps(answer.records))) == without_time(shown)
        for column in {"alpha", "r2", "nats", "y"} & set(shown[0]):
            known = [row[column] for row in shown if row[column] is not None]
            assert answer.frame()[column].dropna().tolist() == answer.arrow()[column].drop_null().to_pylist() == known
        assert answer.arrow().num_rows == len(answer.frame()) == len(shown)


def test_results_hold_the_rows_the_tables_and_the_words(laws: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["alpha"] for each in laws.results for row in each.rows] == [row["alpha"] for row in laws.records]
    assert all(each.sentences and each.tables and next(iter(each.figures())) for each in laws.results)
    laws.show()
    shown, html = capsys.readouterr().out, laws._repr_html_()
    assert "-ln RBP_1" in shown
    assert all(each.sentences[0] in html for each in laws.results)
    assert "<th>α</th>" in html
    (words,) = {*laws.tables()["laws"]["status_word"]}
    assert words in shown
    assert words in html
    assert list(laws.frame().columns) == list(laws.records[0])


def test_a_list_of_datasets_is_a_sweep(store: Path, own: Path, laws: Any) -> None:
    both = rbpx.open(store, own).fit(dataset=["other", "synthetic"], k=1, laws="rbp", resamples=60)
    assert [row["dataset"] for row in both.records] == ["other", "synthetic"]
    assert [row["alpha"] for row in both.records] == [
        row["alpha"] for row in laws.records if (row["law"], row["k"]) == ("rbp", 1)
    ]


def test_observations_are_counted_tokens_at_any_k_under_any_rule(store: Path) -> None:
    opened = rbpx.open(str(store))
    found = opened.observations(k=[3, 17], ties="mid").to_pandas()
    tokens = opened.sql("SELECT run_id, greater, ties FROM tokens").to_pandas()
    assert len(found) == 20
    for row in found.itertuples():
        of_run = tokens[tokens.run_id == row.run_id]
        assert row.rbp == pytest.approx(np.mean(of_run.greater + of_run.ties / 2 + 1 <= row.k), abs=1e-12)
    usual = opened.observations().to_pandas()
    assert set(usual.ties) == {"pessimistic"}
    assert set(usual.k) == {1, 10, 100, 500, 1000, 2500, 10000}
    assert opened.frame("SELECT count(*) AS n FROM runs")["n"].tolist() == [10]


WRONG_QUESTIONS: list[tuple[Any, str]] = [
    (lambda m: m.fit(resampels=3), "fit has no key resampels; did you mean resamples"),
    (lambda m: m.fit(sieze="3k"), r"did you mean size\? see help\(rbpx\.Measurements\.fit\)"),
    (lambda m: m.fit(k=0), r"k=0 is not a valid rank.*as in k=\[1, 10, 100\]"),
    (lambda m: m.fit(store="elsewhere"), r"rbpx\.open"),
    (lambda m: m.fit(size=3), "size=3 was read as a number"),
    (lambda m: m.fit(k=object()), "not a supported primitive type.*k"),
    (lambda m: m.observations(ties="odd"), "pessimistic"),
]


def test_threads_may_ask_one_store(store: Path) -> None:
    opened = rbpx.open(store)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(opened.fit, k=1, laws=["rbp"], resamples=20) for _ in range(6)]
    one, *others = [str(answer.result()) for answer in asked]
    assert all(other == one for other in others)


def test_a_wrong_question_is_one_line_as_python_writes_it(store: Path) -> None:
    opened = rbpx.open(store)
    for ask, says in WRONG_QUESTIONS:
        with pytest.raises(rbpx.RbpxError, match=says) as problem:
            ask(opened)
        assert "\n" not in str(problem.value)


def test_a_store_with_nothing_in_it_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(rbpx.RbpxError, match="holds no runs"):
        rbpx.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_measuring_can_be_asked_for_again_in_one_session(tmp_path: Path) -> None:
    importlib.import_module("rbpx.measure.results")  # as measuring does, and the package hides the function
    for _ in range(2):
        with pytest.raises(rbpx.RbpxError, match="nosuch"):
            rbpx.measure(store=tmp_path / "store", model="ladder", dataset="nosuch")


def test_text_reaches_an_analysis_as_it_was_given(tmp_path: Path) -> None:
    value = 'a b 1e3, null [3k] $$a$$ "so" back\\slash ü {a: 1}'
    for source in (value, "1e3", "null"):
        slices, store = {"a": f"x{source}"}, str(tmp_path / source)
        (request,) = requests(asking("gaps"), {"source": source, "slices": slices}, store)
        assert (request.source, request.slices, request.store) == ([source], slices, store)


def test_values_of_numpy_and_of_paths_are_plain_ones() -> None:
    given = {"k": np.array([1, 3]), "resamples": np.int64(30), "E": np.float64(0.5), "size": ("3k", "7k")}
    (request,) = requests(asking("fit"), {**given, "laws": "rbp", "k": 3}, "store")
    assert (request.size, request.resamples, request.E.value) == (["3k", "7k"], 30, 0.5)
    (request,) = requests(asking("fit"), {"k": given["k"]}, "store")
    assert request.k.asked == (1, 3)


# -------------------------------------------------------------------------------------------------------------- picture


def test_another_figure_is_drawn_by_its_name(laws: Any) -> None:
    points = drawn(laws.plot("residuals").to_dict())[-1]
    first = next(row for row in laws.details if row["law"] == "cross_entropy")
    left = [float(row["residual_ln"]) for row in points if row["series"] == "cross-entropy"]
    assert left == pytest.approx(first["params"]["residuals_ln"], rel=1e-4)
    with pytest.raises(rbpx.RbpxError, match=r"fit has no figure 'residual'.*did you mean residuals.*known: laws"):
        laws.plot("residual")


def drawn(chart: dict[str, Any]) -> list[list[dict[str, str]]]:
    """The rows of each layer."""
    return [list(csv.DictReader(io.StringIO(layer["data"]["values"]))) for layer in chart["layer"]]


# ---------------------------------------------------------------------------------------------------------------- types


def test_the_types_of_the_questions_are_those_of_their_keys() -> None:
    assert STUB.read_text(encoding="utf-8") == stub()


def test_plain_rows_are_what_tables_show_and_what_tells_rows_apart(store: Path) -> None:
    asked = {"dataset": "synthetic", "laws": ["rbp"], "k": [1, 10], "resamples": 25}
    answer = rbpx.open(store).fit(**asked)
    assert [row["fit_id"] for row in answer.records] == [row["fit_id"] for row in answer.details]
    (shown,) = (table for name, table in answer.tables().items() if name == "laws")
    for row, whole, cells in zip(answer.records, answer.details, shown.to_dict("records"), strict=True):
        assert not {"params", "run_ids", "created_at"} & set(row)
        assert {"family", "dataset", "law", "k", "alpha", "alpha_lo", "alpha_hi", "E", "status"} <= set(row)
        assert all(row[name] == cells[name] for name in ("alpha", "alpha_lo", "C", "r2", "status"))
        assert row["E"] == whole["params"]["E"]
        assert len(row) < len(whole)


def test_half_of_a_surrogate_pair_is_refused_by_the_name_of_its_key(store: Path) -> None:
    opened = rbpx.open(store)
    for ask, key in (
        (lambda: opened.fit(dataset="\ud800"), "dataset"),
        (lambda: opened.fit(laws=["\ud800"]), "laws"),
        (lambda: opened.sql("SELECT '\ud800'"), "query"),
        (lambda: rbpx.open("\ud800"), "store"),
    ):
        with pytest.raises(rbpx.RbpxError, match=f"^{key}=.* holds half of a surrogate pair"):
            ask()
