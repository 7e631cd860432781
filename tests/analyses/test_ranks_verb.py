"""`ranks` and `entropy` as commands, on drawn stores: against loops over the tokens, and against what `fit` says."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import linregress

from rbpx.analyses.entropy import analysis as entropy
from rbpx.analyses.ranks import analysis as ranks
from rbpx.analyses.ranks.compare import compare
from rbpx.analyses.ranks.views import tables
from rbpx.config.request import Request
from rbpx.groups.select.sizes import select
from rbpx.laws.intervals.estimate import document_weights
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.draws import few_or_all, plausible
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, V, write_store

Rows = list[dict[str, Any]]
TRUTH = Truth(S=(1_000, 30_000, 1_000_000, 30_000_000), shared=0.1)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sizes, 12,000 tokens each."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    write_store(root, TRUTH, seed=3, n_documents=60, n_tokens=200)
    return root


def rows(store: Path, cwd: Path, *words: str) -> Rows:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def ranks_of(store: Path, run_id: str) -> tuple[Any, Any]:
    """(doc_id, rank) of each token of a run."""
    tokens = columns_of(store / "runs" / run_id, "tokens")
    return tokens["doc_id"], tokens["greater"] + tokens["ties"] + 1


@pytest.fixture(scope="module")
def said(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    cwd = tmp_path_factory.mktemp("cwd")
    return rows(drawn, cwd, "ranks", "resamples=100", "k=[1,10,100]")


@pytest.fixture(scope="module")
def terms_said(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return rows(drawn, tmp_path_factory.mktemp("cwd"), "entropy", "resamples=100")


def of_kind(said: Rows, kind: str) -> Rows:
    return [row for row in said if row["kind"] == kind]


def test_each_run_has_eight_distributions_and_the_criteria_are_those_of_its_likelihood(said: Rows) -> None:
    found = of_kind(said, "distribution")
    assert len(found) == 4 * 8
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


def test_what_a_power_law_derives_is_its_plain_sum(said: Rows) -> None:
    for row in of_kind(said, "distribution"):
        if row["distribution"] != "power_law":
            continue
        share = np.arange(1, V + 1) ** -row["params"]["beta"]
        share /= share.sum()
        for k, y in row["params"]["derived_neg_ln_rbp"].items():
            assert y == pytest.approx(-math.log(share[: int(k)].sum()), rel=1e-9)
        assert row["params"]["derived_entropy_nats"] == pytest.approx(-float(share @ np.log(share)), rel=1e-9)


def test_the_measured_side_of_the_closure_is_what_fit_says(said: Rows, drawn: Path, cwd: Path) -> None:
    laws = rows(drawn, cwd, "fit", "resamples=100", "k=[1,10,100]", "laws=[rbp,cross_entropy,error_entropy]")
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


def test_the_distributions_stay_in_the_store_whatever_is_fitted_later(said: Rows, drawn: Path, cwd: Path) -> None:
    query = (
        "SELECT distribution, (params->>'$.nats_behind')::DOUBLE AS behind, params->>'$.neg_ln_rbp_1' AS derived "
        "FROM rank_fits WHERE ties = 'pessimistic'"
    )
    rows(drawn, cwd, "fit", "resamples=50")
    kept = rows(drawn, cwd, "sql", query)
    assert len(kept) == 4 * 8
    assert all(row["behind"] is not None for row in kept if row["distribution"] == "power_law")
    assert all(row["derived"] is not None for row in kept if row["distribution"] == "lognormal_paper")


def test_half_ranks_have_a_status_and_no_numbers(own_store: Path, cwd: Path) -> None:
    found = of_kind(rows(own_store, cwd, "ranks", "ties=mid", "resamples=50"), "distribution")
    assert {row["status"] for row in found} == {"mid_ranks"}
    assert all(row["loglik"] is None and row["aic"] is None for row in found)
    assert "mid ranks" in here("ranks", "ties=mid", "--store", own_store, cwd=cwd, check=0).stdout


def test_the_tables_fit_a_terminal(drawn: Path, cwd: Path) -> None:
    for verb in ("ranks", "entropy"):
        printed = here(verb, "resamples=50", "--store", drawn, cwd=cwd, check=0).stdout
        tables = [line for line in printed.splitlines() if line.startswith(" ")]
        assert max(len(line.rstrip()) for line in tables) <= 80


def test_one_document_gives_numbers_and_no_intervals(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", TRUTH, seed=4, n_documents=1, n_tokens=400)
    for verb in ("ranks", "entropy"):
        laws = [row for row in rows(tmp_path / "store", cwd, verb, "resamples=50") if row.get("law")]
        assert laws
        for row in laws:
            without = {"sign_change", "not_positive"}
            assert row["status"] in without or "one_document" in [row["status"], *row["params"].get("reasons", ())]
        assert all(row["alpha_lo"] is None and row["alpha_hi"] is None for row in laws)
        assert all(row["params"].get("level_lo") is None for row in laws)
    stated = [row for row in rows(tmp_path / "store", cwd, "ranks") if row["kind"] == "distribution"]
    assert all(row["params"].get("nats_behind_lo") is None and "mu_lo" not in row["params"] for row in stated)


def test_few_resamples_give_no_intervals(drawn: Path, cwd: Path) -> None:
    found = rows(drawn, cwd, "ranks", "resamples=1")
    assert all(row["params"].get("nats_behind_lo") is None for row in of_kind(found, "distribution"))
    terms = [row for row in rows(drawn, cwd, "entropy", "resamples=1") if row["kind"] == "terms"]
    assert all(row["error_entropy_share_corrected_lo"] is None for row in terms)


@pytest.mark.parametrize("verb", ["ranks", "entropy"])
def test_imported_results_hold_no_tokens(verb: str, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    here("experiment=published_gpt2_wikipedia", "--store", store, cwd=cwd, check=0)
    answer = here(verb, "ties=optimistic", "--store", store, cwd=cwd, check=2)
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "imported results have none" in answer.stderr


def test_terminal_report_and_rows_give_a_difference_of_exponents_with_one_sign(
    said: Rows, drawn: Path, cwd: Path
) -> None:
    closures = of_kind(said, "closure")
    printed = here("ranks", "resamples=100", "k=[1,10,100]", "--store", drawn, cwd=cwd, check=0).stdout
    with connect(Store(drawn)) as connection:
        request = Request(resamples=100, k=[1, 10, 100])
        (group,) = select(connection, request)
        result = ranks.analyse(connection, group, request)
    reported = [row for table in tables([result]) if table.name.startswith("laws") for row in table.records()]
    assert len(closures) == len(reported) > 0
    for row, cells in zip(closures, reported, strict=True):
        more = row["alpha"] - row["params"]["measured"]["alpha"]
        assert (row["params"]["alpha_more"], cells["difference"]) == pytest.approx((more, more), abs=1e-9)
        assert cells["difference_lo"] <= cells["difference"] <= cells["difference_hi"]
        ends = f"{cells['difference_lo']:.3f}..{cells['difference_hi']:.3f}"
        assert f"{more:.3f} {ends}" in " ".join(printed.split())


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


def test_the_laws_of_entropy_are_lines_through_the_terms_and_their_shares(terms_said: Rows) -> None:
    terms = [row for row in terms_said if row["kind"] == "terms"]
    ln_S = np.log([row["non_embedding_params"] for row in terms])
    laws = {row["law"]: row for row in terms_said if row["kind"] == "law"}
    columns = {"error_entropy": "error_entropy_nats", "error_entropy_corrected": "error_entropy_jackknife_nats"}
    for law, column in columns.items() | {("error_entropy_share", "error_entropy_share")}:
        line = linregress(ln_S, np.log([row[column] for row in terms]))
        assert laws[law]["alpha"] == pytest.approx(-line.slope, rel=1e-8)
        assert laws[law]["r2"] == pytest.approx(line.rvalue**2, rel=1e-8)


def test_jackknife_and_extrapolation_stand_on_either_side_of_the_true_entropy(tmp_path: Path) -> None:
    """The entropy of the law that the ranks are drawn from, by its exact sum; ten draws of ranks for one size."""
    truth = Truth(S=(1_000_000,), shared=0.0, beta=0.7)
    p = np.diff(np.exp(-truth.C * 1e6**-truth.alpha * np.arange(1, V) ** -truth.beta), prepend=0.0)
    p = np.append(p, 1 - p.sum())
    true = float(-np.sum(p[p > 0] * np.log(p[p > 0])))
    below, above, plug_in = [], [], []
    for seed in range(10):
        store = write_store(tmp_path / str(seed), truth, seed, n_documents=100, n_tokens=100)
        with connect(store) as connection:
            (group,) = select(connection, Request())
            (found,) = entropy.analyse(connection, group, Request(resamples=20)).runs
        assert found.jackknife is not None
        assert found.extrapolated is not None
        below.append(found.jackknife)
        above.append(found.extrapolated)
        plug_in.append(found.terms["error_entropy"])
    assert np.mean(plug_in) < np.mean(below) < true < np.mean(above)
    assert true - np.mean(below) < 0.7 * (true - np.mean(plug_in))


@few_or_all(40, 200)
def test_intervals_over_documents_hold_the_truth_as_often_as_they_say(n_draws: int) -> None:
    """Ranks of a known Zipf-Mandelbrot law and of a known lognormal, draws of 40 documents each."""
    size, k_grid = 300, (1, 10, 100)
    share = (np.arange(1, size + 1) - 0.4) ** -1.3
    share /= share.sum()
    true = np.append(-np.log(np.cumsum(share)[[0, 9, 99]]), -float(share @ np.log(share)))
    held = np.zeros(len(true))
    parameters = {"mu": 0, "sigma": 0}
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        weights_BD = document_weights(40, 100, seed)
        counts = documents(rng.choice(size, size=(40, 50), p=share) + 1)
        zipf = next(r for r in compare(counts, weights_BD, k_grid, size) if r.fit.distribution == "zipf_mandelbrot")
        assert zipf.curve is not None
        assert zipf.curve_B is not None
        held += np.abs(zipf.curve - true) <= 1.96 * zipf.curve_B.std(axis=0, ddof=1)
        drawn = np.rint(np.exp(rng.normal(1.5, 1.2, (40, 50)))).astype(int).clip(1, 1000)
        interval = compare(documents(drawn), weights_BD, k_grid, 1000)[0].interval
        for name, value in (("mu", 1.5), ("sigma", 1.2)):
            parameters[name] += interval[name][0] <= value <= interval[name][1]
    for n in (*held, *parameters.values()):
        assert plausible(n, n_draws) if n_draws < 200 else 178 <= n <= 198, (held, parameters)


def documents(rank_DT: Any) -> pa.Table:
    """Counts by document and rank, as the query gives them."""
    doc = np.repeat(np.arange(len(rank_DT)), rank_DT.shape[1])
    pairs, n = np.unique(np.stack([doc, rank_DT.ravel()]), axis=1, return_counts=True)
    return pa.table({"doc_id": pairs[0], "rank": pairs[1].astype(float), "n_tokens": n})
