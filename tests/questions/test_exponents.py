"""Exponents beside each other: from the store and from a file of published slopes, against plain regressions."""

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rbpx.questions.exponents.mean import mean_over
from rbpx.runs.points.sizes import Points
from tests.support.asking import ask, ask_file, refused
from tests.support.composed import here
from tests.support.means import over_common_models, over_families_and_texts
from tests.support.places import PUBLISHED
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


def test_the_24_pairs_of_table_2() -> None:
    with (PUBLISHED / "paper_table2_size_law.csv").open() as file:
        slopes = {(row["dataset"], row["family"], row["k"]): float(row["slope"]) for row in csv.DictReader(file)}
    asked = ask_file(PUBLISHED / "paper_table2_size_law.csv", "exponents")
    pairs, (mean,) = asked.of_kind("pair"), asked.of_kind("mean")
    assert len(pairs) == mean["n_pairs"] == 24
    for row in pairs:
        names = (row["dataset"], row["family"])
        assert row["difference"] == pytest.approx(slopes[*names, "CE"] - slopes[*names, "1"])
        alphas = [-slopes[*names, str(k)] for k in (1, 10, 100)]
        assert row["drift"] == pytest.approx(np.polyfit(np.log([1, 10, 100]), alphas, 1)[0])
    assert mean["difference"] == pytest.approx(np.mean([row["difference"] for row in pairs]))
    assert mean["difference_lo"] < 0 < mean["difference_hi"]
    assert mean["drift_lo"] > 0
    told, mean_of = asked.table(100, details=False), np.mean([row["difference"] for row in pairs])
    assert told.startswith(
        "alpha of -ln RBP_1 and of cross-entropy cannot be told apart; they differ by "
        f"{mean_of:.4f} (95 %: {mean['difference_lo']:.4f} to {mean['difference_hi']:.4f})"
    )
    assert max(map(len, told.partition("\n\n")[2].split("k = 1 - CE:")[0].splitlines())) <= 100


def test_a_drawn_family_has_the_exponents_of_its_tokens(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=4, token_DT=np.tile(np.arange(60) % 3, (40, 1)))
    (pair,) = ask(store, "exponents", resamples=40).of_kind("pair")
    S, loss, hits = [], [], []
    for run in sorted((store.root / "runs").glob("[!_]*")):
        tokens = columns_of(run, "tokens")
        S.append(float(run.name.removeprefix("synthetic")))
        loss.append(-float(tokens["logprob"].mean()))
        hits.append([np.mean(tokens["greater"] < k) for k in (1, 10, 100)])
    alphas = -np.polyfit(np.log(S), np.log(np.column_stack([loss, -np.log(hits)])), 1)[0]
    drift = np.polyfit(np.log([1, 10, 100]), alphas[1:], 1)[0]
    assert pair["alpha_cross_entropy"] == pytest.approx(alphas[0], rel=1e-6)
    assert pair["difference"] == pytest.approx(alphas[1] - alphas[0], rel=1e-6, abs=1e-9)
    assert pair["drift"] == pytest.approx(drift, rel=1e-6, abs=1e-9)
    assert pair["difference_lo"] < pair["difference"] < pair["difference_hi"]
    assert pair["drift_lo"] <= 0 <= pair["drift_hi"]  # one exponent at every k is what was drawn


def test_the_interval_of_the_mean_holds_that_of_other_families_and_texts() -> None:
    assert sum(over_families_and_texts(100)) >= 87  # few clusters: at least nearly the level
    assert mean_over([1.0], ["a"], ["b"]).lo is None


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize(("n_families", "n_texts"), [(1, 3), (4, 3)])
def test_what_models_of_a_size_have_in_common_is_in_the_interval_of_the_mean(
    n_families: int, n_texts: int, correlation: float
) -> None:
    covered, alone = over_common_models(n_families, n_texts, correlation, 60)
    assert sum(covered) >= 50
    if (n_families, correlation) == (1, 0.9):
        assert sum(alone) < 42  # so the draws can tell


def test_documents_of_the_only_text_are_in_the_interval_of_the_mean() -> None:
    """Two families that err by the same documents: all that they differ by is nothing."""
    rng, S = np.random.default_rng(4), np.geomspace(1e7, 1e10, 5)
    runs: Any = tuple(SimpleNamespace(x=size) for size in S)
    slope_B = 0.003 * rng.normal(size=400)
    y_BN = S**-0.04 * np.exp(-np.outer(slope_B, np.log(S / 1e8)))
    points = [Points("rbp", 1, runs, S**-0.04, y_BN, n_effective=50) for _ in range(2)]
    ends = mean_over([0.04, 0.04], ["a", "b"], ["text", "text"], points).ends
    stderr = float(np.std(slope_B, ddof=1)) * (50 / 49) ** 0.5
    assert ends == pytest.approx((0.04 - 2.0096 * stderr, 0.04 + 2.0096 * stderr), rel=1e-4)  # t of 49


def test_slopes_of_one_family_do_not_say_how_its_models_scatter(cwd: Path, tmp_path: Path) -> None:
    slopes = "".join(f"{text},one,{k},{slope}\n" for text in "ab" for k, slope in (("1", -0.1), ("CE", -0.06)))
    (tmp_path / "slopes.csv").write_text("dataset,family,k,slope\n" + slopes, encoding="utf-8")
    mean = ask_file(tmp_path / "slopes.csv", "exponents").rows[-1]
    assert (mean["n_pairs"], mean["difference_lo"], mean["difference_hi"]) == (2, None, None)
    assert mean["difference"] == pytest.approx(0.04)
    shown = here("exponents", tmp_path / "slopes.csv", cwd=cwd, check=0).stdout
    assert "(no interval), since slopes of one family do not say how its models scatter" in shown


def test_the_drift_is_that_of_all_k_and_not_of_those_that_agree(tmp_path: Path) -> None:
    store, ks = tmp_path / "store", [1, 2, 5, 20, 50, 100]
    write_store(store, Truth(), seed=5, n_tokens=100, late=Truth(alpha=0.3, beta=0.15), cut=50)
    (pair,) = ask(store, "exponents", k=ks, resamples=40).of_kind("pair")
    assert pair["drift"] == pytest.approx(np.polyfit(np.log(ks), [pair[f"alpha_{k}"] for k in ks], 1)[0])
    assert pair["drift_lo"] < pair["drift"] < pair["drift_hi"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dataset,family,k\na,b,1\n", "no column slope"),
        ("dataset,family,k,slope\na,b,one,0.1\n", "k=one"),
        ("dataset,family,k,slope\na,b,1,-0.1\n", "no family and text with both k=1 and CE"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "slopes.csv").write_text(text, encoding="utf-8")
    with refused(says):
        ask_file(tmp_path / "slopes.csv", "exponents")
