"""Gaps between slices: known ones come out as often as stated, counts are a loop's, no condition is a statement."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import document_weights
from rbpx.questions.gaps import GapsKeys
from rbpx.questions.gaps.pairs import pairs_of
from rbpx.runs.select.groups import select
from rbpx.store.sql import ask as ask_sql
from rbpx.store.sql import connect, connected_once
from rbpx.store.store import Store
from tests.support.asking import Asked, Rows, ask
from tests.support.stores import Measured, columns_of, runs_by_size, snapshot
from tests.support.synthetic import Truth, write_store

HARD, EASY, CUT = Truth(C=6.0, alpha=0.12), Truth(C=3.0, alpha=0.07), 20
TWO = {"early": "position <= 20", "late": "position > 20"}
N = 300  # documents


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Five sizes; the first 20 tokens of a document are harder than the other 40, and get better faster."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    ids_DT = np.random.default_rng(3).zipf(1.5, (N, 60)).clip(1, 200)
    write_store(root, HARD, seed=7, n_documents=N, late=EASY, cut=CUT, token_DT=ids_DT)
    with connected_once():
        yield root


def asked(store: Path, slices: Any, k: Any = 1, **keys: Any) -> Asked:
    return ask(store, "gaps", slices=slices, **{"resamples": 20, "k": k, **keys})


@pytest.fixture(scope="module")
def two(drawn: Path) -> Rows:
    return asked(drawn, TWO, [1, 10], resamples=100).rows


def tokens_of(store: Path) -> dict[int, dict[str, Any]]:
    """The columns of every run by S, read by nothing but pyarrow."""
    found = {run_id: columns_of(store / "runs" / run_id, "tokens") for run_id in Store(store).run_ids()}
    return {Store(store).manifest(run_id)["non_embedding_params"]: columns for run_id, columns in found.items()}


# --------------------------------------------------------------------------------------------------- known gaps


def test_the_gap_between_slices_of_known_laws_is_the_difference_of_their_exponents(two: Rows) -> None:
    found = two
    assert [(row["params"]["loss"], row["k"]) for row in found] == [("rbp", 1), ("rbp", 10), ("cross_entropy", None)]
    for row in found[:2]:
        about = row["params"]
        assert (about["slice_a"], about["slice_b"]) == ("early", "late")
        assert (about["where_a"], about["where_b"]) == ("position <= 20", "position > 20")
        assert (about["n_tokens_a"], about["n_tokens_b"]) == (N * 20, N * 40)
        assert row["dataset"] == row["dataset_b"] == "synthetic"
        assert about["delta_lo"] < -0.05 < about["delta_hi"] < 0
        assert about["verdict"] == "closes"


def test_the_gap_is_the_line_through_shares_counted_in_a_loop(drawn: Path, two: Rows) -> None:
    ln_ratio = []
    for columns in tokens_of(drawn).values():
        hits, n = Counter[bool](), Counter[bool]()
        for position, greater in zip(columns["position"], columns["greater"], strict=True):
            n[position <= 20] += 1
            hits[position <= 20] += greater < 10
        ln_ratio.append(math.log(math.log(hits[True] / n[True]) / math.log(hits[False] / n[False])))
    (row,) = [row for row in two if row["k"] == 10]
    slope = np.polyfit(np.log(list(tokens_of(drawn))), ln_ratio, 1)[0]
    assert row["params"]["delta"] == pytest.approx(slope, rel=1e-9)


def test_both_slices_are_resampled_by_the_same_documents(drawn: Path, two: Rows) -> None:
    """The spread of delta over replicates, from a loop that draws each document with all its tokens."""
    ln_S, of_size = np.log(list(tokens_of(drawn))), []
    for columns in tokens_of(drawn).values():
        early, hit, doc = columns["position"] <= 20, columns["greater"] == 0, columns["doc_id"]
        of_size.append([np.bincount(doc[early == side], hit[early == side], N) for side in (True, False)])
    deltas = []
    for weights in document_weights(N, 100, 42):
        ln_ratio = [math.log(math.log(weights @ a / (N * 20)) / math.log(weights @ b / (N * 40))) for a, b in of_size]
        deltas.append(np.polyfit(ln_S, ln_ratio, 1)[0])
    (row,) = [row for row in two if row["k"] == 1]
    sd = np.std(deltas, ddof=1) * math.sqrt(N / (N - 1))  # N drawn from N spread a little less than others
    assert row["params"]["alpha_text_sd"] == pytest.approx(sd, rel=1e-9)


# ------------------------------------------------------------------------------------------------- which tokens


def test_a_single_condition_is_compared_with_the_rest_to_which_belongs_what_is_unknown(drawn: Path, two: Rows) -> None:
    condition = "CASE WHEN position > 20 THEN true WHEN position > 10 THEN NULL ELSE false END"
    for one in (asked(drawn, {"late": condition}).rows[0], asked(drawn, {"late": "position > 20"}).rows[0]):
        assert {one["params"]["slice_a"], one["params"]["slice_b"]} == {"late", "not late"}
        assert sorted((one["params"]["n_tokens_a"], one["params"]["n_tokens_b"])) == [N * 20, N * 40]
    assert one["params"]["delta"] == pytest.approx(two[0]["params"]["delta"], rel=1e-12)
    assert one["fit_id"] != two[0]["fit_id"]


def test_positions_are_cut_into_the_buckets_that_occur(drawn: Path, two: Rows) -> None:
    rows = asked(drawn, "position").rows
    assert {frozenset((row["params"]["slice_a"], row["params"]["slice_b"])) for row in rows} == {
        frozenset(("1-15", "16-63"))
    }
    assert sorted((rows[0]["params"]["n_tokens_a"], rows[0]["params"]["n_tokens_b"])) == [N * 15, N * 45]
    assert len({row["fit_id"] for row in two + rows}) == len(two) + len(rows)


def test_frequencies_and_deciles_are_those_of_a_loop_over_the_types(measured: Measured) -> None:
    run = runs_by_size(measured.store)["l"]
    often = Counter(run["token_id"].tolist())
    decile, before = {}, 0
    for token_id in sorted(often, key=lambda t: (-often[t], t)):
        decile[token_id] = 1 + 10 * before // len(run["token_id"])
        before += often[token_id]
    with connect(Store(measured.store)) as connection:
        found = ask_sql(connection, "scored_tokens", run_id=run["run_id"], ties="mid").to_pylist()
        texts = dict(connection.execute("SELECT token_id, text FROM vocab").fetchall())
    assert len(found) == len(run["token_id"])
    for row in found:
        assert (row["frequency"], row["decile"]) == (often[row["token_id"]], decile[row["token_id"]])
        assert row["rank"] == row["greater"] + row["ties"] / 2 + 1
        assert row["text"] == texts[row["token_id"]]
    assert len(set(decile.values())) > 5


def test_slices_by_the_text_of_the_tokens_are_counted_from_the_vocabulary(tmp_path: Path) -> None:
    """The vocabulary of a drawn store is a, b and c."""
    ids_DT = np.random.default_rng(5).integers(0, 3, (20, 30))
    store = write_store(tmp_path / "store", HARD, seed=2, n_documents=20, n_tokens=30, token_DT=ids_DT).root
    about = asked(store, {"e": "contains(text, $$b$$)"}).rows[0]["params"]
    side = "a" if about["slice_a"] == "e" else "b"
    assert about[f"n_tokens_{side}"] == (ids_DT == 1).sum()


# -------------------------------------------------------------------------------------------------------- doubts


def test_slices_of_other_tokens_at_other_sizes_are_marked(drawn: Path) -> None:
    found = asked(drawn, {"a": "random() < 0.5"}, 10)
    numbered = [row for row in found.rows if row["alpha"] is not None]
    assert numbered
    assert all("mixed" in row["params"]["reasons"] for row in numbered)
    assert "mixed: Points differ in more than size" in found.words


def test_a_slice_of_one_document_has_no_interval_and_says_so(drawn: Path) -> None:
    for row in asked(drawn, {"one": "doc_id = 4"}, 10).rows:
        assert row["status"] == "one_document"
        assert row["params"]["delta"] is not None
        assert {row["alpha_lo"], row["params"]["delta_lo"], row["params"]["ratio_hi"], row["params"]["verdict"]} == {
            None
        }


# ----------------------------------------------------------------------------------------- conditions as users err

# Statements, functions of several rows, other relations, what is no truth value, and what holds of all tokens or none.
WRONG = (Path(__file__).parent / "no_conditions.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_no_condition_is_a_statement_and_each_wrong_one_is_one_line(drawn: Path) -> None:
    before = snapshot(drawn)
    with connect(Store(drawn)) as connection:
        runs = connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall()
        groups = select(connection, GapsKeys())
        for condition in WRONG:
            with pytest.raises(RbpxError, match="mine") as told:
                pairs_of(connection, groups, GapsKeys(resamples=20, slices={"mine": condition}))
            assert "\n" not in str(told.value), condition
            assert connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall() == runs
    assert snapshot(drawn) == before
