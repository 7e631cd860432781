"""`ranks` and `entropy` as commands, on drawn stores: against loops over the tokens, and against what `fit` says."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.laws.ranks.distribution import DISTRIBUTIONS as NAMES
from rbpx.laws.ranks.family import FAMILIES
from rbpx.questions.render import tables
from rbpx.store.sql import connected_once
from rbpx.store.store import Store
from tests.same_answers.answers import STORES
from tests.support.asking import Asked, Rows, ask, imported, refused
from tests.support.commands import here
from tests.support.stores import Measured, columns_of
from tests.support.synthetic import Truth, V, write_store

TRUTH = Truth(S=(1_000, 30_000, 1_000_000, 30_000_000), shared=0.1)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Four sizes, 6,000 tokens each, asked over one connection."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    write_store(root, TRUTH, seed=3, n_documents=60, n_tokens=100)
    with connected_once():
        yield root


def ranks_of(store: Path, run_id: str) -> tuple[Any, Any]:
    """(doc_id, rank) of each token of a run."""
    tokens = columns_of(store / "runs" / run_id, "tokens")
    return tokens["doc_id"], tokens["greater"] + tokens["ties"] + 1


@pytest.fixture(scope="module")
def ranks(drawn: Path) -> Asked:
    return ask(drawn, "ranks", resamples=60, k=[1, 10, 100])


@pytest.fixture(scope="module")
def said(ranks: Asked) -> Rows:
    return ranks.rows


@pytest.fixture(scope="module")
def entropies(drawn: Path) -> Asked:
    return ask(drawn, "entropy", resamples=60)


@pytest.fixture(scope="module")
def terms_said(entropies: Asked) -> Rows:
    return entropies.rows


def of_kind(said: Rows, kind: str) -> Rows:
    return [row for row in said if row["kind"] == kind]


def test_each_run_has_six_distributions_and_the_criteria_are_those_of_its_likelihood(said: Rows) -> None:
    found = of_kind(said, "distribution")
    assert len(found) == 4 * 6
    n_parameters = {"power_law": 1, "lognormal_inflated": 3}
    for row in found:
        m = n_parameters.get(row["distribution"], 2)
        if row["loglik"] is None:
            assert row["status"] != "ok"
            continue
        assert row["aic"] == pytest.approx(2 * m - 2 * row["loglik"])
        assert row["bic"] == pytest.approx(m * math.log(row["params"]["n_tokens"]) - 2 * row["loglik"])
    for size in {row["size"] for row in found}:
        over_all = [r for r in found if r["size"] == size and r["distribution"] != "lognormal_paper" and r["aic"]]
        (best,) = [r for r in over_all if r["params"]["is_best"]]
        assert best["aic"] == min(r["aic"] for r in over_all)
        for r in over_all:
            lost = (best["loglik"] - r["loglik"]) / best["params"]["n_tokens"]
            assert r["params"]["nats_behind"] == pytest.approx(lost, abs=1e-9)


def test_what_fit_keeps_of_distributions_takes_nothing_from_what_ranks_kept(said: Rows, drawn: Path) -> None:
    ask(drawn, "fit", laws=["lognormal_rbp1"], resamples=10)
    records = {(row["run_id"], row["distribution"]): row for row in Store(drawn).records("rank_fits")}
    assert len(records) == len(of_kind(said, "distribution"))
    assert all(
        row["params"]["neg_ln_rbp_1"] is not None for (_, name), row in records.items() if name == "lognormal_paper"
    )


def test_the_verdict_is_said_first(ranks: Asked) -> None:
    """What describes the ranks better than the lognormal at how many sizes, and how far off the laws of that are."""
    found, first = ranks.of_kind("distribution"), ranks.table(100, details=False).splitlines()[0]
    aic = {name: np.array([row["aic"] for row in found if row["distribution"] == name]) for name in NAMES}
    best = min(aic, key=lambda name: aic[name].sum())
    better = int(np.sum(aic[best] < aic["lognormal_full"]))
    assert best != "lognormal_full"
    at = f"all {better}" if better == 4 else f"{better} of 4"
    label = FAMILIES[best].label
    verdict = f"not lognormal: {'an' if label[0] in 'aeiou' else 'a'} {label} fits them better at {at} sizes."
    assert verdict in first
    params = [row["params"] for row in found if row["distribution"] == "lognormal_paper"]
    ratios = [each["derived_neg_ln_rbp"]["1"] / each["measured_neg_ln_rbp"]["1"] for each in params]
    assert f"The lognormal implies -ln RBP_1 {np.exp(np.mean(np.log(ratios))):.2f} (95 %: " in first


def test_a_terminal_has_the_distributions_down_to_the_lognormal(ranks: Asked) -> None:
    shown = ranks.table(100, details=False)
    assert " lognormal  " in shown
    assert "published fit" not in shown


def test_what_a_power_law_derives_is_its_plain_sum(said: Rows) -> None:
    for row in of_kind(said, "distribution"):
        if row["distribution"] != "power_law":
            continue
        share = np.arange(1, V + 1) ** -row["params"]["beta"]
        share /= share.sum()
        for k, y in row["params"]["derived_neg_ln_rbp"].items():
            assert y == pytest.approx(-math.log(share[: int(k)].sum()), rel=1e-9)
        assert row["params"]["derived_entropy_nats"] == pytest.approx(-float(share @ np.log(share)), rel=1e-9)


def test_the_measured_side_of_the_closure_is_what_fit_says(said: Rows, drawn: Path) -> None:
    laws = ask(drawn, "fit", resamples=60, k=[1, 10, 100], laws=["rbp", "cross_entropy", "error_entropy"]).rows
    fitted = {(law["law"], law["k"]): law for law in laws}
    closures = of_kind(said, "closure")
    assert {row["params"]["distribution"] for row in closures} >= {"lognormal_paper"}
    for row in closures:
        law = fitted[row["params"]["quantity"], row["k"]]
        for name in ("alpha", "alpha_lo", "alpha_hi"):
            assert row["params"]["measured"][name] == pytest.approx(law[name], rel=1e-9)


def test_the_slope_of_a_derived_law_is_a_line_through_derived_curves(said: Rows) -> None:
    runs = {r["size"]: r for r in of_kind(said, "distribution") if r["distribution"] == "lognormal_paper"}
    S = [row["non_embedding_params"] for row in runs.values()]
    for row in of_kind(said, "closure"):
        if row["params"]["distribution"] != "lognormal_paper" or row["params"]["quantity"] != "rbp":
            continue
        y = [each["params"]["derived_neg_ln_rbp"][str(row["k"])] for each in runs.values()]
        measured = [each["params"]["measured_neg_ln_rbp"][str(row["k"])] for each in runs.values()]
        assert row["alpha"] == pytest.approx(-linregress(np.log(S), np.log(y)).slope, rel=1e-8)
        level = np.exp(np.mean(np.log(np.array(y) / np.array(measured))))
        assert row["params"]["level"] == pytest.approx(level, rel=1e-8)
        assert row["params"]["level_lo"] < level < row["params"]["level_hi"]
    lines = {row["law"]: row for row in of_kind(said, "trend")}
    mu = [each["params"]["mu"] for each in runs.values()]
    if None not in mu:
        assert lines["lognormal_mu"]["alpha"] == pytest.approx(-linregress(np.log(S), mu).slope, rel=1e-8)


def test_half_ranks_have_a_status_and_no_numbers(measured: Measured) -> None:
    asked = ask(measured.store, "ranks", ties="mid", resamples=50)
    found = asked.of_kind("distribution")
    assert {row["status"] for row in found} == {"not_known"}
    assert all(row["loglik"] is None and row["aic"] is None for row in found)
    assert "in whole ranks: " in asked.words


def test_the_tables_fit_a_terminal(ranks: Asked, entropies: Asked) -> None:
    for asked in (ranks, entropies):
        for columns, details in ((80, True), (100, False)):
            tables = [line for line in asked.table(columns, details).splitlines() if line.startswith(" ")]
            assert max(len(line.rstrip()) for line in tables) <= columns


def test_one_document_gives_numbers_and_no_intervals(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", TRUTH, seed=4, n_documents=1, n_tokens=400)
    of_ranks, of_entropy = (ask(store, verb, resamples=50).rows for verb in ("ranks", "entropy"))
    for of_verb in (of_ranks, of_entropy):
        laws = [row for row in of_verb if row.get("law")]
        assert laws
        for row in laws:
            without = {"sign_change", "not_positive"}
            assert row["status"] in without or "one_document" in [row["status"], *row["params"].get("reasons", ())]
        assert all(row["alpha_lo"] is None and row["alpha_hi"] is None for row in laws)
        assert all(row["params"].get("level_lo") is None for row in laws)
    stated = of_kind(of_ranks, "distribution")
    assert all(row["params"].get("nats_behind_lo") is None and "mu_lo" not in row["params"] for row in stated)


def test_few_resamples_give_no_intervals(drawn: Path) -> None:
    found = ask(drawn, "ranks", resamples=1).of_kind("distribution")
    assert all(row["params"].get("nats_behind_lo") is None for row in found)
    terms = ask(drawn, "entropy", resamples=1).of_kind("terms")
    assert all(row["error_entropy_share_corrected_lo"] is None for row in terms)


@pytest.mark.parametrize("verb", ["ranks", "entropy"])
def test_imported_results_hold_no_tokens(verb: str, tmp_path: Path) -> None:
    store = imported(tmp_path / "store", "S,k,rbp\n1000,1,0.5\n10000,1,0.6\n", ties="optimistic", dataset="d")
    with refused("imported results have none"):
        ask(store, verb, ties="optimistic")


def test_terminal_report_and_rows_give_a_difference_of_exponents_with_one_sign(ranks: Asked) -> None:
    closures = ranks.of_kind("closure")
    reported = [row for table in tables(ranks.results) if table.name.startswith("laws") for row in table.records()]
    assert len(closures) == len(reported) > 0
    for row, cells in zip(closures, reported, strict=True):
        more = row["alpha"] - row["params"]["measured"]["alpha"]
        assert (row["params"]["alpha_more"], cells["alpha_more"]) == pytest.approx((more, more), abs=1e-9)
        assert cells["alpha_more_lo"] <= cells["alpha_more"] <= cells["alpha_more_hi"]
        ends = f"{cells['alpha_more_lo']:.3f}..{cells['alpha_more_hi']:.3f}"
        assert f"{more:.3f} {ends}" in ranks.words


# ----------------------------------------------------------------------------------------------------------- entropy


def entropy_nats(rank: Any) -> float:
    n = np.unique(rank, return_counts=True)[1]
    return float(-np.sum(n / n.sum() * np.log(n / n.sum())))


def test_the_terms_are_those_of_a_loop_over_the_tokens_and_the_jackknife_leaves_each_document_out(
    drawn: Path, terms_said: Rows
) -> None:
    for row in (row for row in terms_said if row["kind"] == "terms"):
        doc, rank = ranks_of(drawn, row["run_id"])
        whole = entropy_nats(rank)
        assert row["error_entropy_nats"] == pytest.approx(whole, rel=1e-9)
        left = [entropy_nats(rank[doc != d]) for d in range(60)]
        assert row["error_entropy_jackknife_nats"] == pytest.approx(60 * whole - 59 * np.mean(left), rel=1e-7)
        parts = [row[f"{name}_nats"] for name in ("error_entropy", "self_alignment", "confidence")]
        assert sum(parts) == pytest.approx(row["cross_entropy_nats"], rel=1e-9)
        shares = [row[f"{name}_share"] for name in ("error_entropy", "self_alignment", "confidence")]
        assert sum(shares) == pytest.approx(1, rel=1e-9)
        for name in ("error_entropy", "self_alignment", "confidence"):
            lo, hi = row[f"{name}_share_corrected_lo"], row[f"{name}_share_corrected_hi"]
            assert row[f"{name}_share_corrected"] == pytest.approx((lo + hi) / 2, rel=1e-9)
            assert lo < hi
        # H is counted too small, and the rest therefore too large: its corrected share is the larger one.
        assert row["error_entropy_share_corrected"] > row["error_entropy_share"]


def test_the_first_line_has_the_terms_of_the_largest_size_and_the_exponents(entropies: Asked) -> None:
    line, found = entropies.table(100, details=False).splitlines()[0], entropies.of_kind("terms")
    last, law = found[-1], {row["law"]: row for row in entropies.of_kind("law")}
    assert (
        f"{last['cross_entropy_nats']:.3f} nats, is the sum of error-entropy {last['error_entropy_nats']:.3f}" in line
    )
    alpha = -np.polyfit(
        np.log([row["non_embedding_params"] for row in found]), np.log([row["error_entropy_nats"] for row in found]), 1
    )[0]
    assert f"of error-entropy is {alpha:.3f} (95 %: {law['error_entropy']['alpha_lo']:.3f} to" in line


def test_the_laws_of_entropy_are_lines_through_the_terms_and_their_shares(terms_said: Rows) -> None:
    terms = [row for row in terms_said if row["kind"] == "terms"]
    ln_S = np.log([row["non_embedding_params"] for row in terms])
    laws = {row["law"]: row for row in terms_said if row["kind"] == "law"}
    columns = {"error_entropy": "error_entropy_nats", "error_entropy_corrected": "error_entropy_jackknife_nats"}
    for law, column in columns.items() | {("error_entropy_share", "error_entropy_share")}:
        line = linregress(ln_S, np.log([row[column] for row in terms]))
        assert laws[law]["alpha"] == pytest.approx(-line.slope, rel=1e-8)
        assert laws[law]["r2"] == pytest.approx(line.rvalue**2, rel=1e-8)


def test_checkpoints_of_too_few_sizes_are_one_line_beside_groups_with_laws(tmp_path: Path, cwd: Path) -> None:
    store = shutil.copytree(STORES / "trainings", tmp_path / "store")
    counted = Store(store).sql("SELECT count(DISTINCT size) AS n FROM runs GROUP BY family, dataset, revision")
    n_sizes = counted["n"].to_pylist()
    printed = here("ranks", "--store", store, cwd=cwd, check=0).stdout
    assert printed.partition("\n\n")[0].count("\n") + 1 == sum(n >= 3 for n in n_sizes) == 6
    few = [n for n in n_sizes if n < 3]
    assert (
        f"{len(few)} checkpoints of at most {max(few)} sizes have no law in size: ask along their tokens, axis=D"
        in printed
    )
    rows = json.loads(here("ranks", "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    assert len({(row["family"], row["revision"]) for row in rows}) == len(n_sizes)
