"""`ranks` and `entropy` as commands, on drawn stores: against loops over the tokens, and against what `fit` says."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.store.store import Store
from tests.same_answers.answers import STORES
from tests.support.asking import Asked, ask
from tests.support.stores import Measured, columns_of
from tests.support.synthetic import Truth, write_store

TRUTH = Truth(S=(1_000, 30_000, 1_000_000, 30_000_000), shared=0.1)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four sizes, 6,000 tokens each."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    write_store(root, TRUTH, seed=3, n_documents=60, n_tokens=100)
    return root


@pytest.fixture(scope="module")
def ranks(drawn: Path) -> Asked:
    return ask(drawn, "ranks", resamples=60, k=[1, 10, 100])


@pytest.fixture(scope="module")
def entropies(drawn: Path) -> Asked:
    return ask(drawn, "entropy", resamples=60)


def test_each_run_has_six_distributions_of_which_the_best_has_the_least_aic(ranks: Asked) -> None:
    found = ranks.of_kind("distribution")
    assert len(found) == 4 * 6
    assert all(row["loglik"] is not None or row["status"] != "ok" for row in found)
    for size in {row["size"] for row in found}:
        over_all = [r for r in found if r["size"] == size and r["distribution"] != "lognormal_paper" and r["aic"]]
        (best,) = [r for r in over_all if r["params"]["is_best"]]
        assert best["aic"] == min(r["aic"] for r in over_all)
        for r in over_all:
            lost = (best["loglik"] - r["loglik"]) / best["params"]["n_tokens"]
            assert r["params"]["nats_behind"] == pytest.approx(lost, abs=1e-9)


def test_the_measured_side_of_the_closure_is_what_fit_says(ranks: Asked, drawn: Path) -> None:
    laws = ask(drawn, "fit", resamples=60, k=[1, 10, 100], laws=["rbp", "cross_entropy", "error_entropy"]).rows
    fitted = {(law["law"], law["k"]): law for law in laws}
    closures = ranks.of_kind("closure")
    assert {row["params"]["distribution"] for row in closures} >= {"lognormal_paper"}
    for row in closures:
        law = fitted[row["params"]["quantity"], row["k"]]
        for name in ("alpha", "alpha_lo", "alpha_hi"):
            assert row["params"]["measured"][name] == pytest.approx(law[name], rel=1e-9)
        assert row["params"]["alpha_more"] == pytest.approx(row["alpha"] - law["alpha"], abs=1e-9)
        assert f" {row['alpha'] - law['alpha']:.3f} " in ranks.words


def test_the_slope_of_a_derived_law_is_a_line_through_derived_curves(ranks: Asked) -> None:
    runs = [r for r in ranks.of_kind("distribution") if r["distribution"] == "lognormal_paper"]
    ln_S = np.log([row["non_embedding_params"] for row in runs])
    of_rbp = [row for row in ranks.of_kind("closure") if row["params"]["quantity"] == "rbp"]
    for row in (row for row in of_rbp if row["params"]["distribution"] == "lognormal_paper"):
        y, measured = (
            np.log([run["params"][f"{side}_neg_ln_rbp"][str(row["k"])] for run in runs])
            for side in ("derived", "measured")
        )
        assert row["alpha"] == pytest.approx(-linregress(ln_S, y).slope, rel=1e-8)
        level = np.exp(np.mean(y - measured))
        assert row["params"]["level"] == pytest.approx(level, rel=1e-8)
        assert row["params"]["level_lo"] < level < row["params"]["level_hi"]
    (line,) = [row for row in ranks.of_kind("trend") if row["law"] == "lognormal_mu"]
    mu = [run["params"]["mu"] for run in runs]
    assert line["alpha"] == pytest.approx(-linregress(ln_S, mu).slope, rel=1e-8)


def test_half_ranks_have_a_status_and_no_numbers(measured: Measured) -> None:
    asked = ask(measured.store, "ranks", ties="mid", resamples=50)
    found = {(row["status"], row["loglik"], row["aic"]) for row in asked.of_kind("distribution")}
    assert found == {("not_known", None, None)}
    assert "in whole ranks: " in asked.words


# ----------------------------------------------------------------------------------------------------------- entropy


def entropy_nats(rank: Any) -> float:
    n = np.unique(rank, return_counts=True)[1]
    return float(-np.sum(n / n.sum() * np.log(n / n.sum())))


def test_the_terms_are_those_of_a_loop_over_the_tokens_and_the_jackknife_leaves_each_document_out(
    measured: Measured,
) -> None:
    """Of documents of unequal length."""
    names = ("error_entropy", "self_alignment", "confidence")
    for row in ask(measured.store, "entropy", resamples=60).of_kind("terms"):
        tokens = columns_of(measured.store / "runs" / row["run_id"], "tokens")
        doc, rank = tokens["doc_id"], tokens["greater"] + tokens["ties"] + 1
        whole = entropy_nats(rank)
        assert row["error_entropy_nats"] == pytest.approx(whole, rel=1e-9)
        left = [entropy_nats(rank[doc != d]) for d in np.unique(doc)]
        D = len(left)
        assert row["error_entropy_jackknife_nats"] == pytest.approx(D * whole - (D - 1) * np.mean(left), rel=1e-7)
        stderr = np.std(left) * (D - 1) ** 0.5
        assert row["error_entropy_jackknife_stderr_nats"] == pytest.approx(stderr, rel=1e-7)
        assert sum(row[f"{name}_nats"] for name in names) == pytest.approx(row["cross_entropy_nats"], rel=1e-9)
        assert sum(row[f"{name}_share"] for name in names) == pytest.approx(1, rel=1e-9)
        for of in (f"{name}_share_corrected" for name in names):
            assert row[of] == pytest.approx((row[f"{of}_lo"] + row[f"{of}_hi"]) / 2, rel=1e-9)
            assert row[f"{of}_lo"] < row[f"{of}_hi"]
        # H is counted too small, and the rest therefore too large: its corrected share is the larger one.
        assert row["error_entropy_share_corrected"] > row["error_entropy_share"]


def test_the_laws_of_entropy_are_lines_through_the_terms_and_their_shares(entropies: Asked) -> None:
    terms, laws = entropies.of_kind("terms"), {row["law"]: row for row in entropies.of_kind("law")}
    ln_S = np.log([row["non_embedding_params"] for row in terms])
    columns = {"error_entropy": "error_entropy_nats", "error_entropy_corrected": "error_entropy_jackknife_nats"}
    for law, column in (columns | {"error_entropy_share": "error_entropy_share"}).items():
        line = linregress(ln_S, np.log([row[column] for row in terms]))
        assert (laws[law]["alpha"], laws[law]["r2"]) == pytest.approx((-line.slope, line.rvalue**2), rel=1e-8)


def test_checkpoints_of_too_few_sizes_are_one_line_beside_groups_with_laws(tmp_path: Path) -> None:
    store = Path(shutil.copytree(STORES / "trainings", tmp_path / "store"))
    counted = Store(store).sql("SELECT count(DISTINCT size) AS n FROM runs GROUP BY family, dataset, revision")
    n_sizes = counted["n"].to_pylist()
    asked = ask(store, "ranks")
    printed, few = asked.table(100, details=False), [n for n in n_sizes if n < 3]
    assert printed.partition("\n\n")[0].count("\n") + 1 == sum(n >= 3 for n in n_sizes) == 6
    assert f"{len(few)} checkpoints of at most {max(few)} sizes have no law in size: ask along their tokens" in printed
    assert len({(row["family"], row["revision"]) for row in asked.rows}) == len(n_sizes)
