"""Gaps between slices: known ones come out as often as stated, counts are a loop's, no condition is a statement."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.gaps import analysis as gaps
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.select.sizes import select
from rbpx.laws.intervals.estimate import document_weights
from rbpx.store.sql.queries import ask, connect
from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.draws import few_or_all, plausible
from tests.support.stores import Measured, columns_of, runs_by_size, snapshot
from tests.support.synthetic import Truth, write_store

Rows = list[dict[str, Any]]
HARD, EASY, CUT = Truth(C=6.0, alpha=0.12), Truth(C=3.0, alpha=0.07), 20
TWO = 'slices={early: "position <= 20", late: "position > 20"}'


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five sizes; the first 20 tokens of a document are harder than the other 40, and get better faster."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    ids_DT = np.random.default_rng(3).zipf(1.5, (300, 60)).clip(1, 200)
    write_store(root, HARD, seed=7, n_documents=300, late=EASY, cut=CUT, token_DT=ids_DT)
    return root


def rows(store: Path, cwd: Path, *words: str) -> Rows:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def tokens_of(store: Path) -> dict[int, dict[str, Any]]:
    """The columns of every run by S, read by nothing but pyarrow."""
    found = {run_id: columns_of(store / "runs" / run_id, "tokens") for run_id in Store(store).run_ids()}
    return {Store(store).manifest(run_id)["non_embedding_params"]: columns for run_id, columns in found.items()}


def refused(store: Path, cwd: Path, *words: str) -> str:
    answer = here("gaps", *words, "resamples=20", "--store", store, cwd=cwd, check=2)
    (line,) = answer.stderr.strip().splitlines()
    assert answer.stdout == ""
    return line


# --------------------------------------------------------------------------------------------------- known gaps


def test_the_gap_between_slices_of_known_laws_is_the_difference_of_their_exponents(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "gaps", TWO, "resamples=200", "k=[1,10]")
    assert [(row["params"]["loss"], row["k"]) for row in found] == [("rbp", 1), ("rbp", 10), ("cross_entropy", None)]
    for row in found[:2]:
        about = row["params"]
        assert (about["slice_a"], about["slice_b"]) == ("early", "late")
        assert (about["where_a"], about["where_b"]) == ("position <= 20", "position > 20")
        assert (about["n_tokens_a"], about["n_tokens_b"]) == (300 * 20, 300 * 40)
        assert row["dataset"] == row["dataset_b"] == "synthetic"
        assert about["delta_lo"] < -0.05 < about["delta_hi"] < 0
        assert about["verdict"] == "closes"
        assert about["ln_S_closed_lo"] < math.log(6 / 3) / 0.05 < about["ln_S_closed_hi"]


def test_the_gap_is_the_line_through_shares_counted_in_a_loop(drawn: Path, cwd: Path) -> None:
    ln_ratio = []
    for columns in tokens_of(drawn).values():
        hits, n = Counter[bool](), Counter[bool]()
        for position, greater in zip(columns["position"], columns["greater"], strict=True):
            n[position <= 20] += 1
            hits[position <= 20] += greater < 10
        ln_ratio.append(math.log(math.log(hits[True] / n[True]) / math.log(hits[False] / n[False])))
    (row,) = [r for r in rows(drawn, cwd, "gaps", TWO, "resamples=20", "k=10") if r["k"] == 10]
    slope = np.polyfit(np.log(list(tokens_of(drawn))), ln_ratio, 1)[0]
    assert row["params"]["delta"] == pytest.approx(slope, rel=1e-9)


def test_both_slices_are_resampled_by_the_same_documents(drawn: Path, cwd: Path) -> None:
    """The spread of delta over resamples, from a loop that draws each document with all its tokens."""
    B, ln_S, of_size = 40, np.log(list(tokens_of(drawn))), []
    for columns in tokens_of(drawn).values():
        early, hit, doc = columns["position"] <= 20, columns["greater"] == 0, columns["doc_id"]
        of_size.append([np.bincount(doc[early == side], hit[early == side], 300) for side in (True, False)])
    deltas = []
    for weights in document_weights(300, B, 42):
        ln_ratio = [
            math.log(math.log(weights @ a / (300 * 20)) / math.log(weights @ b / (300 * 40))) for a, b in of_size
        ]
        deltas.append(np.polyfit(ln_S, ln_ratio, 1)[0])
    (row,) = [r for r in rows(drawn, cwd, "gaps", TWO, f"resamples={B}", "k=1") if r["k"] == 1]
    sd = np.std(deltas, ddof=1) * math.sqrt(300 / 299)  # 300 documents drawn from 300 spread a little less than others
    assert row["params"]["alpha_text_sd"] == pytest.approx(sd, rel=1e-9)


@few_or_all(25, 100)
def test_the_intervals_hold_the_truth_as_often_as_they_say(
    n_draws: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many texts in one store."""
    monkeypatch.setattr("os.fsync", lambda file: None)  # a store that nobody keeps
    S = (1_000, 20_000, 400_000, 8_000_000)
    hard, easy = Truth(S, C=6.0, alpha=0.12, scatter=0.02), Truth(S, C=3.0, alpha=0.07, scatter=0.02)
    true_ratio = 2 * math.exp(-0.05 * np.log(S).mean())
    for seed in range(n_draws):
        store = write_store(tmp_path, hard, seed, n_tokens=40, dataset=f"text{seed:03d}", late=easy, cut=CUT)
    request = Request(resamples=100, k=10, slices={"early": f"position <= {CUT}"})
    with connect(store) as connection:
        for name in ("tokens", "documents"):  # in memory, or each of 800 questions would open 400 files
            rows_of_all = connection.sql(f"FROM {name}").to_arrow_table()
            connection.unregister(name)
            connection.from_arrow(rows_of_all).create(name)
        found = gaps.analyse(connection, select(connection, request), request)
    assert len(found) == n_draws
    delta = ratio = 0
    for each in found:
        gap = each.gaps[0].gap
        sign, power = (-1, 1 / true_ratio) if gap.swapped else (1, true_ratio)
        assert gap.delta.lo is not None
        assert gap.delta.hi is not None
        assert gap.ratio.lo is not None
        assert gap.ratio.hi is not None
        delta += gap.delta.lo <= -0.05 * sign <= gap.delta.hi
        ratio += gap.ratio.lo <= power <= gap.ratio.hi
    if n_draws == 100:
        assert 88 <= delta <= 99  # 95 are expected; beyond these the probability is below 1 %
        assert 88 <= ratio <= 99
    assert plausible(delta, n_draws)
    assert plausible(ratio, n_draws)


# ------------------------------------------------------------------------------------------------- which tokens


def test_a_single_condition_is_compared_with_the_rest(drawn: Path, cwd: Path) -> None:
    one = rows(drawn, cwd, "gaps", 'slices={late: "position > 20"}', "resamples=20", "k=1")[0]
    two = rows(drawn, cwd, "gaps", TWO, "resamples=20", "k=1")[0]
    assert {one["params"]["slice_a"], one["params"]["slice_b"]} == {"late", "not late"}
    assert one["params"]["delta"] == pytest.approx(two["params"]["delta"], rel=1e-12)
    assert one["fit_id"] != two["fit_id"]


def test_a_token_of_which_the_condition_is_unknown_belongs_to_the_rest(drawn: Path, cwd: Path) -> None:
    condition = "CASE WHEN position > 20 THEN true WHEN position > 10 THEN NULL ELSE false END"
    about = rows(drawn, cwd, "gaps", f'slices={{late: "{condition}"}}', "resamples=20", "k=1")[0]["params"]
    assert sorted((about["n_tokens_a"], about["n_tokens_b"])) == [300 * 20, 300 * 40]


def test_positions_are_cut_into_the_buckets_that_occur(drawn: Path, cwd: Path) -> None:
    found = [row["params"] for row in rows(drawn, cwd, "gaps", "slices=position", "resamples=20", "k=1")]
    assert {frozenset((row["slice_a"], row["slice_b"])) for row in found} == {frozenset(("1-15", "16-63"))}
    assert sorted((found[0]["n_tokens_a"], found[0]["n_tokens_b"])) == [300 * 15, 300 * 45]


@pytest.mark.parametrize("size", ["xs", "l"])
def test_frequencies_and_deciles_are_those_of_a_loop_over_the_types(size: str, measured: Measured) -> None:
    run = runs_by_size(measured.store)[size]
    often = Counter(run["token_id"].tolist())
    decile, before = {}, 0
    for token_id in sorted(often, key=lambda t: (-often[t], t)):
        decile[token_id] = 1 + 10 * before // len(run["token_id"])
        before += often[token_id]
    with connect(Store(measured.store)) as connection:
        found = ask(connection, "scored_tokens", run_id=run["run_id"], ties="mid").to_pylist()
        texts = dict(connection.execute("SELECT token_id, text FROM vocab").fetchall())
    assert len(found) == len(run["token_id"])
    for row in found:
        assert (row["frequency"], row["decile"]) == (often[row["token_id"]], decile[row["token_id"]])
        assert row["rank"] == row["greater"] + row["ties"] / 2 + 1
        assert row["text"] == texts[row["token_id"]]
    assert len(set(decile.values())) > 5


def test_deciles_hold_about_a_tenth_of_the_tokens_each(drawn: Path, cwd: Path) -> None:
    found = [row["params"] for row in rows(drawn, cwd, "gaps", "slices=frequency", "resamples=20", "k=1")]
    sizes = {row[f"slice_{side}"]: row[f"n_tokens_{side}"] for row in found for side in "ab"}
    often = Counter(next(iter(tokens_of(drawn).values()))["token_id"].tolist())
    assert sum(sizes.values()) == 18_000
    assert sizes["decile 1"] == max(often.values())  # a type that is more frequent than a tenth stands alone
    assert all(n < 1800 + max(m for m in often.values() if m < 1800) for name, n in sizes.items() if name[-2:] != " 1")


def test_slices_by_the_text_of_the_tokens_are_counted_from_the_vocabulary(own_store: Path, cwd: Path) -> None:
    found = rows(own_store, cwd, "gaps", 'slices={e: "contains(text, $$e$$)"}', "resamples=50", "k=10")
    counted = rows(own_store, cwd, "sql", "SELECT count(*) AS n FROM tokens t "
                   "JOIN vocab v USING (token_id) WHERE contains(v.text, 'e') GROUP BY run_id")  # fmt: skip
    about = found[0]["params"]
    side = "a" if about["slice_a"] == "e" else "b"
    assert {row["n"] for row in counted} == {about[f"n_tokens_{side}"]}


def test_slices_keep_fits_of_their_own_beside_those_of_texts(own_store: Path, cwd: Path) -> None:
    before = len(rows(own_store, cwd, "sql", "SELECT * FROM fits"))
    first = rows(own_store, cwd, "gaps", "slices=position", "resamples=20", "k=1")
    again = rows(own_store, cwd, "gaps", "slices=position", "resamples=20", "k=1")
    other = rows(own_store, cwd, "gaps", 'slices={a: "position < 9"}', "resamples=20", "k=1")
    assert [row["fit_id"] for row in first] == [row["fit_id"] for row in again]
    ids = {row["fit_id"] for row in first + other}
    assert len(ids) == len(first) + len(other)
    assert len(rows(own_store, cwd, "sql", "SELECT * FROM fits")) == before + len(ids)


# -------------------------------------------------------------------------------------------------------- doubts


@pytest.mark.parametrize("condition", ["greater < 5", "logprob > -3", "random() < 0.5"])
def test_slices_of_other_tokens_at_other_sizes_are_marked(condition: str, drawn: Path, cwd: Path) -> None:
    for row in rows(drawn, cwd, "gaps", f'slices={{a: "{condition}"}}', "resamples=20", "k=10", "ties=mid"):
        assert row["status"] in ("different_tokens", "not_positive")
    printed = here("gaps", 'slices={a: "random() < 0.5"}', "resamples=20", "--store", drawn, cwd=cwd, check=0).stdout
    assert "different tokens: " in printed


def test_a_slice_of_one_document_has_no_interval_and_says_so(drawn: Path, cwd: Path) -> None:
    for row in rows(drawn, cwd, "gaps", 'slices={one: "doc_id = 4"}', "resamples=50", "k=10"):
        assert row["status"] == "one_document"
        assert row["params"]["delta"] is not None
        assert {row["alpha_lo"], row["params"]["delta_lo"], row["params"]["ratio_hi"], row["params"]["verdict"]} == {
            None
        }


def test_the_table_names_the_slices_and_fits_80_columns(drawn: Path, cwd: Path) -> None:
    printed = here("gaps", "slices=frequency", "resamples=20", "--store", drawn, cwd=cwd, check=0).stdout
    assert "Slices of the scored tokens" in printed
    assert re.search(r"decile 1 / decile 10|decile 10 / decile 1", printed)
    assert max(len(line) for line in printed.splitlines() if line.startswith(" ")) <= 80


# ----------------------------------------------------------------------------------------- conditions as users err

WRONG = [
    "position < 9; DROP TABLE runs",
    "position < 9; SELECT 1",
    "1=1) UNION (SELECT 1",
    "true) FROM (runs",
    "position < 9 FROM runs",
    "position < 9 LIMIT 5",
    "position < 9, position > 3",
    "positio < 9",
    "position",
    "text",
    "'early'",
    "NULL",
    "count(*) > 1",
    "row_number() OVER () < 5",
    "unnest([true, false])",
    "*",
    "$run_id = 'a'",
    "position < ?",
    "(position < 9",
    "error('mine')",
    "(SELECT count(*) FROM read_text('/etc/passwd')) > 0",
    "position IN (SELECT column0 FROM read_csv('/etc/passwd'))",
    "EXISTS (FROM glob('/*'))",
    "EXISTS (WITH gone AS (DELETE FROM runs RETURNING *) FROM gone)",
    "EXISTS (FROM query('DROP TABLE runs'))",
    "position < 0",
    "position > 0",
    " ",
]


def test_no_condition_is_a_statement_and_each_wrong_one_is_one_line(own_store: Path) -> None:
    before = snapshot(own_store)
    with connect(Store(own_store)) as connection:
        runs = connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall()
        groups = select(connection, Request())
        for condition in WRONG:
            with pytest.raises(RbpxError, match="mine") as told:
                gaps.analyse(connection, groups, Request(resamples=20, slices={"mine": condition}))
            assert "\n" not in str(told.value), condition
            assert connection.execute("SELECT * FROM runs ORDER BY ALL").fetchall() == runs
    assert snapshot(own_store) == before


@pytest.mark.parametrize(
    "condition", [WRONG[0], WRONG[2], WRONG[7], "(SELECT count(*) FROM read_text($$/etc/passwd$$)) > 0"]
)
def test_the_command_refuses_a_wrong_condition_in_one_line(condition: str, drawn: Path, cwd: Path) -> None:
    assert condition in refused(drawn, cwd, f'slices={{mine: "{condition}"}}')


@pytest.mark.parametrize(
    "slices", ["posit", "{}", "[a,b]", "3", "{mine: true}", '{1: "position < 9"}', '{mine: ["position < 9"]}']
)
def test_what_is_no_choice_of_slices_is_one_line(slices: str, drawn: Path, cwd: Path) -> None:
    assert "slices" in refused(drawn, cwd, f"slices={slices}")


def test_one_slice_is_none_to_compare(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", HARD, seed=1, n_documents=5, n_tokens=12)
    assert "into one slice" in refused(tmp_path / "store", cwd, "slices=position")


def test_slices_of_two_sizes_have_no_law(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(S=(1000, 10_000)), seed=1)
    assert "3 sizes" in refused(tmp_path / "store", cwd, "slices=position")
