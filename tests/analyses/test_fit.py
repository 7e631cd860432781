"""The laws of a family, as `run` and `fit` give them, against least squares on counts taken by hand."""

import json
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.status import Status
from tests.support.commands import Answer, here
from tests.support.stores import (
    RESAMPLES,
    SHAPES,
    Family,
    Measured,
    build_member,
    manifests,
    rank_by_hand,
    runs_by_size,
    write_jsonl,
)

LAWS = {
    "rbp", "cross_entropy", "lognormal_rbp1", "lognormal_cross_entropy", "error_entropy", "self_alignment", "confidence"
}  # fmt: skip
Fit = dict[str, Any]


def fit(store: Path, cwd: Path, *words: str) -> list[Fit]:
    """The rows of `fit --format json`."""
    answer = here("fit", RESAMPLES, *words, "--store", store, "--format", "json", cwd=cwd, check=0)
    return list(json.loads(answer.stdout))


def one(rows: list[Fit], law: str, k: int | None = None) -> Fit:
    (found,) = [row for row in rows if row["law"] == law and row["k"] == k]
    return found


def shares(store: Path, k: int, ties: str = "pessimistic", dtype: str = "float32") -> tuple[Any, Any]:
    """(S, RBP_k) of each size, counted from the tokens."""
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([np.mean(rank_by_hand(run, ties) <= k) for run in runs])


def cross_entropies(store: Path, dtype: str = "float32") -> tuple[Any, Any]:
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([-np.mean(run["logprob"].astype(np.float64)) for run in runs])


def assert_line(row: Fit, S: Any, y: Any) -> None:
    """The numbers of a fit are those of numpy's straight line through (ln S, ln y)."""
    slope, intercept = np.polyfit(np.log(S), np.log(y), 1)
    residual = np.log(y) - (intercept + slope * np.log(S))
    r2 = 1 - np.sum(residual**2) / np.sum((np.log(y) - np.log(y).mean()) ** 2)
    spans_0 = row["alpha_lo"] <= 0 <= row["alpha_hi"]
    assert ("no_trend" in row["params"]["reasons"]) == spans_0
    assert row["status"] == (row["params"]["reasons"] or ["ok"])[0]
    assert row["n_points"] == len(S)
    assert row["alpha"] == pytest.approx(-slope, rel=1e-9, abs=1e-12)
    assert row["C"] == pytest.approx(math.exp(intercept), rel=1e-9)
    assert row["r2"] == pytest.approx(r2, abs=1e-9)
    assert row["params"]["y"] == pytest.approx(y.tolist(), rel=1e-9)
    stderr = math.sqrt(np.sum(residual**2) / (len(S) - 2) / np.sum((np.log(S) - np.log(S).mean()) ** 2))
    assert row["alpha_stderr"] == pytest.approx(stderr, rel=1e-6)
    if len(S) == 3:  # two points predict nothing that could be judged
        assert row["backtest_error"] is None
    else:
        rest = np.polyfit(np.log(S[:-1]), np.log(y[:-1]), 1)
        predicted = math.exp(np.polyval(rest, math.log(S[-1])))
        assert row["backtest_error"] == pytest.approx(predicted / y[-1] - 1, abs=1e-9)


def entropy_terms(tokens: dict[str, Any], ties: str) -> tuple[float, float, float]:
    """Error-entropy, self-alignment and confidence of one run by their definitions, rank by rank."""
    by_rank = defaultdict(list)
    for rank, logprob in zip(rank_by_hand(tokens, ties), tokens["logprob"], strict=True):
        by_rank[rank].append(float(logprob))
    n = sum(map(len, by_rank.values()))
    p = {rank: len(found) / n for rank, found in by_rank.items()}
    score = {rank: math.exp(sum(found) / len(found)) for rank, found in by_rank.items()}
    total = sum(score.values())
    entropy = -sum(p[rank] * math.log(p[rank]) for rank in p)
    alignment = sum(p[rank] * math.log(p[rank] / (score[rank] / total)) for rank in p)
    return entropy, alignment, -math.log(total)


# ----------------------------------------------------------------------------------------------------------- the table


_USUAL = ("-ln RBP_1 ", "-ln RBP_10 ", "-ln RBP_100 ", "cross-entropy")
_DERIVED = ("lognormal RBP_1", "lognormal CE", "error-entropy", "self-alignment", "confidence")


def lines_of(table: str, names: Sequence[str]) -> list[str]:
    """The one line of each law in a printed table."""
    found = [[line for line in table.splitlines() if line.strip().startswith(name)] for name in names]
    assert [len(lines) for lines in found] == [1] * len(names), table
    return [line for (line,) in found]


def test_fit_prints_every_law_side_by_side(measured: Measured, cwd: Path) -> None:
    answer = here("fit", "--store", measured.store, cwd=cwd, check=0)
    for line in lines_of(answer.stdout.split("Scaling laws")[1], (*_USUAL, *_DERIVED)):
        assert re.search(r" (power|offset|undecided|–)  +\w", line), line


def test_run_prints_the_usual_laws_and_a_verdict_on_a_screen(measured: Measured) -> None:
    printed = measured.answer.stdout
    table = printed.split("Scaling laws")[1]
    assert len(printed.splitlines()) <= 40
    lines_of(table, _USUAL)
    assert not [name for name in _DERIVED if name in table]
    passing = sum(line.rstrip().endswith(" passes") for line in lines_of(table, _USUAL))
    assert f"{passing} of these 4 laws pass" in table
    assert "which fit, ranks and entropy show" in table
    S, y = cross_entropies(measured.store)
    slope = np.polyfit(np.log(S), np.log(y), 1)[0]
    assert re.search(rf"cross-entropy +{-slope:.4f} ", table)


def test_run_prints_what_each_model_does(measured: Measured) -> None:
    head = measured.answer.stdout.split("Scaling laws")[0]
    for (size, run), share in zip(runs_by_size(measured.store).items(), shares(measured.store, 10)[1], strict=True):
        line = next(line for line in head.splitlines() if line.split()[:1] == [size])
        assert f"{run['non_embedding_params']:,}" in line
        assert f"{share:.4f}" in line
        assert f"{-np.mean(run['logprob'].astype(float)):.4f}" in line


def test_the_printed_table_is_whole_on_a_narrow_terminal(measured: Measured) -> None:
    """Words that are cut are words that nobody understands; the rows of the laws end with their status."""
    begins = {status.label.split()[0] for status in Status} | {"limit", "beyond", "turns", "failed", "missed"}
    form = r" (?:power|offset|undecided|–)  +(?=[a-z])"
    rows = [line for line in measured.answer.stdout.split("Scaling laws")[1].splitlines() if re.search(form, line)]
    assert len(rows) >= 4
    assert {re.split(form, line)[1].split()[0] for line in rows} <= begins
    assert max(map(len, rows)) <= 80


# ----------------------------------------------------------------------------------------------------------- the rows


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "mid"])
def test_the_rbp_and_cross_entropy_laws_are_least_squares_on_counts(ties: str, own_store: Path, cwd: Path) -> None:
    ks = [1, 5, 10, 20, 30, 50, 70, 100]
    rows = fit(own_store, cwd, f"ties={ties}", f"k={ks}")
    for k in ks:
        S, share = shares(own_store, k, ties)
        assert_line(one(rows, "rbp", k), S, -np.log(share))
    assert_line(one(rows, "cross_entropy"), *cross_entropies(own_store))
    assert {row["ties"] for row in rows} == {ties}
    assert {row["law"] for row in rows} == LAWS
    assert {(row["source"], row["family"], row["dataset"]) for row in rows} == {("measured", "mine", "file")}
    assert {(row["protocol"], row["dtype"], row["method"]) for row in rows} == {("paper", "float32", "ols")}


def test_the_tie_rule_changes_the_law(own_store: Path, cwd: Path) -> None:
    """Else the test above could not tell the rules apart."""
    ks = "k=[1,5,10,20,30,50,70,100]"
    alphas = {
        tuple(row["alpha"] for row in fit(own_store, cwd, f"ties={ties}", ks, "laws=[rbp]"))
        for ties in ("pessimistic", "optimistic", "mid")
    }
    assert len(alphas) == 3


@pytest.mark.parametrize("ties", ["pessimistic", "mid"])
def test_the_terms_of_the_error_entropy_add_up_to_the_cross_entropy(ties: str, own_store: Path, cwd: Path) -> None:
    rows = fit(own_store, cwd, f"ties={ties}")
    terms = [one(rows, law)["params"]["y"] for law in ("error_entropy", "self_alignment", "confidence")]
    assert np.sum(terms, axis=0) == pytest.approx(cross_entropies(own_store)[1], abs=1e-6)
    for run, found in zip(runs_by_size(own_store).values(), zip(*terms, strict=True), strict=True):
        assert found == pytest.approx(entropy_terms(run, ties), rel=1e-9, abs=1e-12)


def test_the_laws_derived_from_the_lognormal_come_with_a_status(own_store: Path, cwd: Path) -> None:
    for law in ("lognormal_rbp1", "lognormal_cross_entropy"):
        row = one(fit(own_store, cwd), law)
        assert (row["alpha"] is None) == (row["C"] is None)
        assert (row["alpha"] is None) == (row["status"] in {"not_converged", "not_positive"})


def test_the_interval_surrounds_alpha_and_says_what_it_holds(own_store: Path, cwd: Path) -> None:
    for row in (row for row in fit(own_store, cwd) if row["law"] in ("cross_entropy", "rbp")):
        about = row["params"]
        assert row["alpha_lo"] < row["alpha_hi"]
        assert about["interval"] == "documents and models"
        assert about["n_resamples"] == 50
        middle = (row["alpha_lo"] + row["alpha_hi"]) / 2
        assert middle == pytest.approx(row["alpha"] - about["alpha_text_bias"], abs=1e-9)
        assert row["alpha_lo"] <= about["alpha_text_lo"] < about["alpha_text_hi"] <= row["alpha_hi"]


def test_a_fit_says_which_runs_it_is_of(own_store: Path, cwd: Path) -> None:
    runs = runs_by_size(own_store)
    for row in fit(own_store, cwd):
        assert row["run_ids"] == [run["run_id"] for run in runs.values()]
        assert row["params"]["S"] == [run["non_embedding_params"] for run in runs.values()]
        assert row["params"]["sizes"] == list(SHAPES)


# ------------------------------------------------------------------------------------------------------- what is asked


def test_k_can_be_one_a_list_or_log(own_store: Path, cwd: Path) -> None:
    assert [row["k"] for row in fit(own_store, cwd, "laws=[rbp]", "k=5")] == [5]
    rows = fit(own_store, cwd, "laws=[rbp]", "k=[100,5,100,5000]")
    assert [(row["k"], row["alpha"] is not None) for row in rows] == [(5, True), (100, True), (5000, False)]
    assert rows[-1]["status"] == "beyond_vocabulary"
    assert [row["k"] for row in fit(own_store, cwd, "laws=[rbp]")] == [1, 10, 100]  # 500 and more are beyond V = 320
    rows = fit(own_store, cwd, "laws=[rbp]", "k=log")
    grid = [row["k"] for row in rows]
    assert {1, 10, 100} < set(grid)
    assert grid == sorted(set(grid))
    assert 12 <= len(grid) <= 40
    assert 200 < grid[-1] < 320
    wide = [b / a for a, b in pairwise(grid) if a >= 10]
    assert max(wide) < 1.6
    for k in (2, 100):
        if k in grid:
            S, share = shares(own_store, k)
            assert_line(one(rows, "rbp", k), S, -np.log(share))


@pytest.mark.parametrize("asked", ["laws=rbp", "laws=[rbp]"])
def test_only_the_laws_asked_for_are_fitted(asked: str, own_store: Path, cwd: Path) -> None:
    assert {row["law"] for row in fit(own_store, cwd, asked)} == {"rbp"}
    assert {row["law"] for row in fit(own_store, cwd, "laws=[cross_entropy,confidence]")} == {
        "cross_entropy",
        "confidence",
    }


def test_sizes_narrow_a_fit(own_store: Path, cwd: Path) -> None:
    rows = fit(own_store, cwd, "size=[xs,s,l]")
    assert {row["n_points"] for row in rows} == {3}
    S, y = cross_entropies(own_store)
    kept = [0, 1, 3]
    assert_line(one(rows, "cross_entropy"), S[kept], y[kept])


def test_a_family_of_ones_own_narrows_a_fit(own_store: Path, family: Family, cwd: Path) -> None:
    here("measure", *family.words("xs", "s", "m", name="other"), "--store", own_store, cwd=cwd, check=0)
    assert {row["family"] for row in fit(own_store, cwd)} == {"mine", "other"}
    rows = fit(own_store, cwd, "model=hub", "model.family=other")
    assert {(row["family"], row["n_points"]) for row in rows} == {("other", 3)}


def test_the_dataset_narrows_a_fit(own_store: Path, family: Family, cwd: Path) -> None:
    words = ["dataset=pydoc" if word == "dataset=file" else word for word in family.words("xs", "s", "m")]
    here("measure", *words, "limit=4", "--store", own_store, cwd=cwd, check=0)
    assert {row["dataset"] for row in fit(own_store, cwd)} == {"pydoc", "file"}
    assert {row["dataset"] for row in fit(own_store, cwd, "dataset=pydoc")} == {"pydoc"}
    assert {row["dataset"] for row in fit(own_store, cwd, "dataset=file", "dataset.path=unread")} == {"file"}


# ------------------------------------------------------------------------------------------------- what enters a fit


def test_groups_of_different_text_or_dtype_are_never_pooled(
    own_store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    here("measure", *family.words("xs", "s", "m"), "dtype=bfloat16", "--store", own_store, cwd=cwd, check=0)
    text = write_jsonl(tmp_path / "other.jsonl", "The letters are read twice: once by the one who writes them.", "of")
    here("measure", *family.words("s", "m", "l", text=text), "--store", own_store, cwd=cwd, check=0)
    rows = [row for row in fit(own_store, cwd) if row["law"] == "cross_entropy"]
    facts = manifests(own_store)
    seen = set()
    for row in rows:
        runs = [facts[run_id] for run_id in row["run_ids"]]
        assert {(run["text_hash"], run["dtype"]) for run in runs} == {(row["text_hash"], row["dtype"])}
        seen.add((row["text_hash"], row["dtype"], row["n_points"]))
        assert row["params"]["y"] == pytest.approx([run["cross_entropy_nats"] for run in runs], rel=1e-9)
    assert sorted((dtype, n) for _, dtype, n in seen) == [("bfloat16", 3), ("float32", 3), ("float32", 4)]
    assert len({text_hash for text_hash, _, _ in seen}) == 2
    assert_line(next(row for row in rows if row["n_points"] == 4), *first_text(own_store))


def first_text(store: Path) -> tuple[Any, Any]:
    """(S, cross-entropy) of the runs of the text that all four sizes were measured on."""
    by_text = defaultdict(list)
    for run in manifests(store).values():
        if run["dtype"] == "float32":
            by_text[run["text_hash"]].append((run["non_embedding_params"], run["cross_entropy_nats"]))
    (points,) = [sorted(points) for points in by_text.values() if len(points) == 4]
    return np.array([S for S, _ in points]), np.array([y for _, y in points])


def test_windows_of_different_length_are_never_pooled(own_store: Path, family: Family, cwd: Path) -> None:
    here("measure", *family.words(), "protocol.window=32", "--store", own_store, cwd=cwd, check=0)
    rows = [row for row in fit(own_store, cwd) if row["law"] == "cross_entropy"]
    assert [row["n_points"] for row in rows] == [4, 4]
    facts = manifests(own_store)
    assert sorted({facts[run_id]["window"] for run_id in row["run_ids"]} == {32} for row in rows) == [False, True]


def test_a_model_that_was_trained_on_enters_once_with_its_newest_run(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    folders = dict(family.folders) | {"m": build_member(tmp_path / "m", "m", seed=7)}
    before = Family(folders, family.text)
    here("measure", *before.words(), "--store", store, cwd=cwd, check=0)
    old = {run["run_id"] for run in runs_by_size(store).values()}
    build_member(tmp_path / "m", "m", seed=8)
    here("measure", *before.words(), "--store", store, cwd=cwd, check=0)
    (new,) = set(manifests(store)) - old
    row = one(fit(store, cwd), "cross_entropy")
    assert row["n_points"] == 4
    assert new in row["run_ids"]
    assert len(manifests(store)) == 5


# ------------------------------------------------------------------------------------------------------ what is kept


def kept(store: Path, cwd: Path, relation: str) -> list[Fit]:
    answer = here("sql", f"SELECT * FROM {relation}", "--store", store, "--format", "json", cwd=cwd, check=0)
    return list(json.loads(answer.stdout))


def test_a_refit_replaces_its_own_rows(own_store: Path, cwd: Path) -> None:
    first = fit(own_store, cwd)
    again = fit(own_store, cwd, "fresh=true")
    assert [row["fit_id"] for row in first] == [row["fit_id"] for row in again]
    assert len({row["fit_id"] for row in first}) == len(first)
    rows = kept(own_store, cwd, "fits")
    assert sorted(row["fit_id"] for row in rows) == sorted(row["fit_id"] for row in again)
    assert min(row["created_at"] for row in rows) > max(row["created_at"] for row in first)
    fit(own_store, cwd, "ties=optimistic")
    assert len(kept(own_store, cwd, "fits")) == 2 * len(first)


def test_what_is_kept_is_what_was_printed(own_store: Path, cwd: Path) -> None:
    printed = {row["fit_id"]: row for row in fit(own_store, cwd)}
    for row in kept(own_store, cwd, "fits"):
        for name in ("law", "k", "alpha", "C", "r2", "status", "run_ids", "n_points", "created_at"):
            assert row[name] == printed[row["fit_id"]][name]
        assert json.loads(row["params"])["y"] == printed[row["fit_id"]]["params"]["y"]


def test_rank_fits_hold_each_distribution_of_each_run_once(own_store: Path, cwd: Path) -> None:
    fit(own_store, cwd)
    rows = kept(own_store, cwd, "rank_fits")
    runs = {run["run_id"] for run in runs_by_size(own_store).values()}
    assert {row["run_id"] for row in rows} == runs
    assert len(rows) == len({(row["run_id"], row["distribution"], row["ties"]) for row in rows}) == 2 * len(runs)
    for row in rows:
        assert row["status"] in {"ok", "power_law_limit", "not_converged", "too_few_tokens"}
        assert row["loglik"] is None or row["loglik"] < 0


def test_fits_whose_runs_are_gone_are_dropped_by_gc(own_store: Path, cwd: Path) -> None:
    assert kept(own_store, cwd, "fits")
    shutil.rmtree(own_store / "runs" / runs_by_size(own_store)["s"]["run_id"])
    here("store", "gc", "--store", own_store, cwd=cwd, check=0)
    assert kept(own_store, cwd, "fits") == []
    assert len(kept(own_store, cwd, "runs")) == 3


# ------------------------------------------------------------------------------------------------- fewer than 3 sizes


@pytest.fixture(scope="module")
def two_sizes(family: Family, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    place = tmp_path_factory.mktemp("two")
    (place / "cwd").mkdir()
    words = ["run", *family.words("xs", "m"), RESAMPLES, "--store", place / "store"]
    return place / "store", here(*words, cwd=place / "cwd", check=0)


def test_run_with_two_sizes_prints_its_measurements_and_what_a_law_needs(two_sizes: tuple[Path, Answer]) -> None:
    store, answer = two_sizes
    assert "2 sizes (xs, m); a law needs at least 3" in answer.stdout
    for share, y in zip(shares(store, 1)[1], cross_entropies(store)[1], strict=True):
        assert f"{share:.4f}" in answer.stdout
        assert f"{y:.4f}" in answer.stdout
    assert "Scaling laws" not in answer.stdout


def test_fit_with_two_sizes_is_a_wrong_request_that_says_what_to_measure(
    two_sizes: tuple[Path, Answer], cwd: Path
) -> None:
    answer = here("fit", RESAMPLES, "--store", two_sizes[0], cwd=cwd, check=2)
    assert "3 sizes" in answer.stderr
    assert "measure" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_group_with_two_sizes_beside_one_with_four_is_told_with_its_status(
    own_store: Path, family: Family, cwd: Path
) -> None:
    here("measure", *family.words("xs", "m"), "limit=4", "--store", own_store, cwd=cwd, check=0)
    rows = [row for row in fit(own_store, cwd) if row["law"] == "cross_entropy"]
    assert sorted((row["n_points"], row["status"] == "too_few_sizes") for row in rows) == [(2, True), (4, False)]
    assert {row["alpha"] for row in rows if row["n_points"] == 2} == {None}


def test_two_models_of_the_same_size_are_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    folders = dict(family.folders) | {"twin": build_member(tmp_path / "twin", "m", seed=9)}
    twins = Family(folders, family.text)
    words = ["run", *twins.words("xs", "m", "twin"), RESAMPLES, "--store", tmp_path / "store"]
    answer = here(*words, cwd=cwd)
    assert answer.returncode in (1, 2)
    assert "Traceback" not in answer.stderr
    told = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert sum("two models with S = 14,496" in line for line in told) == 1
