"""Exponents beside each other: from the store and from a file of published slopes, against plain regressions."""

import csv
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.exponents.analysis import mean_over
from rbpx.groups.points.sizes import Points
from tests.support.commands import here
from tests.support.draws import few_or_all
from tests.support.places import PUBLISHED
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


def ask(cwd: Path, *words: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(here("exponents", *words, "--format", "json", cwd=cwd, check=0).stdout)
    return rows


def test_the_24_pairs_of_table_2(cwd: Path) -> None:
    with (PUBLISHED / "paper_table2_size_law.csv").open() as file:
        slopes = {(row["dataset"], row["family"], row["k"]): float(row["slope"]) for row in csv.DictReader(file)}
    rows = ask(cwd, PUBLISHED / "paper_table2_size_law.csv")
    pairs, (mean,) = [row for row in rows if row["kind"] == "pair"], [row for row in rows if row["kind"] == "mean"]
    assert len(pairs) == mean["n_pairs"] == 24
    for row in pairs:
        names = (row["dataset"], row["family"])
        assert row["difference"] == pytest.approx(slopes[*names, "CE"] - slopes[*names, "1"])
        alphas = [-slopes[*names, str(k)] for k in (1, 10, 100)]
        assert row["drift"] == pytest.approx(np.polyfit(np.log([1, 10, 100]), alphas, 1)[0])
    assert mean["difference"] == pytest.approx(np.mean([row["difference"] for row in pairs]))
    assert mean["difference_lo"] < 0 < mean["difference_hi"]
    assert mean["drift_lo"] > 0


def test_a_drawn_family_has_the_exponents_of_its_tokens(cwd: Path, tmp_path: Path) -> None:
    token_DT = np.tile(np.arange(60) % 3, (40, 1))
    write_store(tmp_path / "store", Truth(), seed=4, token_DT=token_DT)
    rows = ask(cwd, "resamples=40", "--store", tmp_path / "store")
    (pair,) = [row for row in rows if row["kind"] == "pair"]
    S, loss, miss = [], [], []
    for run in sorted((tmp_path / "store" / "runs").iterdir()):
        tokens = columns_of(run, "tokens")
        S.append(float(run.name.removeprefix("synthetic")))
        loss.append(-float(tokens["logprob"].mean()))
        miss.append(-math.log(np.mean(tokens["greater"] == 0)))
    alpha_ce, alpha_1 = (-np.polyfit(np.log(S), np.log(y), 1)[0] for y in (loss, miss))
    assert pair["alpha_cross_entropy"] == pytest.approx(alpha_ce, rel=1e-6)
    assert pair["difference"] == pytest.approx(alpha_1 - alpha_ce, rel=1e-6, abs=1e-9)
    assert pair["difference_lo"] < pair["difference"] < pair["difference_hi"]
    assert pair["drift_lo"] <= 0 <= pair["drift_hi"]  # one exponent at every k is what was drawn


@few_or_all(100, 1000)
def test_the_interval_of_the_mean_holds_that_of_other_families_and_texts(n_draws: int) -> None:
    rng, covered = np.random.default_rng(1), 0
    families, texts = (list(np.ravel(each)) for each in np.meshgrid(range(4), range(6)))
    for _ in range(n_draws):
        value = rng.normal(size=4)[families] + rng.normal(size=6)[texts] + rng.normal(size=24) / 2
        ends = mean_over(value.tolist(), families, texts)
        assert ends.lo is not None
        assert ends.hi is not None
        covered += ends.lo <= 0 <= ends.hi
    assert covered >= 0.9 * n_draws  # few clusters: at least nearly the level
    assert mean_over([1.0], ["a"], ["b"]).lo is None


@few_or_all(100, 1000)
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("n_families", "n_texts"), [(1, 3), (1, 6), (4, 1), (4, 3)])
def test_what_models_of_a_size_have_in_common_is_in_the_interval_of_the_mean(
    n_families: int, n_texts: int, correlation: float, n_draws: int
) -> None:
    """Models that are off alike on all texts, and trainings of a size that are in all families."""
    rng, S = np.random.default_rng(2), np.geomspace(1e7, 1e10, 5)
    runs: Any = tuple(SimpleNamespace(x=size) for size in S)
    families, texts = (np.ravel(each).tolist() for each in np.meshgrid(range(n_families), range(n_texts)))
    covered = alone = 0
    for _ in range(n_draws):
        common, own = rng.normal(size=5), rng.normal(size=(len(texts), 5))
        scatter = 0.02 * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)
        points = [Points("rbp", 1, runs, S**-0.04 * np.exp(off), None) for off in scatter]
        value = [-float(np.polyfit(np.log(S), np.log(each.y_N), 1)[0]) for each in points]
        of_mean = mean_over(value, families, texts, points).ends
        assert of_mean is not None
        covered += int(of_mean[0] <= 0.04 <= of_mean[1])
        between = 4.303 * np.std(value, ddof=1) / math.sqrt(len(value))  # t of three independent pairs
        alone += int(abs(float(np.mean(value)) - 0.04) <= between)
    assert covered >= 0.9 * n_draws
    if (n_families, n_texts, correlation) == (1, 3, 0.9):
        assert alone < 0.65 * n_draws  # so the draws can tell


def test_documents_of_the_only_text_are_in_the_interval_of_the_mean() -> None:
    """Two families that err by the same documents: all that they differ by is nothing."""
    rng, S = np.random.default_rng(4), np.geomspace(1e7, 1e10, 5)
    runs: Any = tuple(SimpleNamespace(x=size) for size in S)
    slope_B = 0.003 * rng.normal(size=400)
    y_BN = S**-0.04 * np.exp(-np.outer(slope_B, np.log(S / 1e8)))
    points = [Points("rbp", 1, runs, S**-0.04, y_BN, n_documents=50) for _ in range(2)]
    ends = mean_over([0.04, 0.04], ["a", "b"], ["text", "text"], points).ends
    stderr = float(np.std(slope_B, ddof=1)) * math.sqrt(50 / 49)
    assert ends == pytest.approx((0.04 - 2.0096 * stderr, 0.04 + 2.0096 * stderr), rel=1e-4)  # t of 49


def test_slopes_of_one_family_do_not_say_how_its_models_scatter(cwd: Path, tmp_path: Path) -> None:
    slopes = "".join(f"{text},one,{k},{slope}\n" for text in "ab" for k, slope in (("1", -0.1), ("CE", -0.06)))
    (tmp_path / "slopes.csv").write_text("dataset,family,k,slope\n" + slopes, encoding="utf-8")
    mean = ask(cwd, tmp_path / "slopes.csv")[-1]
    assert (mean["n_pairs"], mean["difference_lo"], mean["difference_hi"]) == (2, None, None)
    assert mean["difference"] == pytest.approx(0.04)
    shown = here("exponents", tmp_path / "slopes.csv", cwd=cwd, check=0).stdout
    assert "(no interval), since slopes of one family do not say how its models scatter" in shown


def test_the_drift_is_that_of_all_k_and_not_of_those_that_agree(cwd: Path, tmp_path: Path) -> None:
    late = Truth(alpha=0.3, beta=0.15)
    write_store(tmp_path / "store", Truth(), seed=5, n_documents=60, n_tokens=200, late=late, cut=100)
    (pair, *_) = ask(cwd, "k=[1,2,5,20,50,100]", "resamples=40", "--store", tmp_path / "store")
    ks = (1, 2, 5, 20, 50, 100)
    assert pair["drift"] == pytest.approx(np.polyfit(np.log(ks), [pair[f"alpha_{k}"] for k in ks], 1)[0])
    assert pair["drift_lo"] < pair["drift"] < pair["drift_hi"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dataset,family,k\na,b,1\n", "no column slope"),
        ("dataset,family,k,slope\na,b,one,0.1\n", "k=one"),
        ("dataset,family,k,slope\na,b,1,-0.1\n", "both k=1 and CE"),
    ],
)
def test_a_wrong_file_is_one_line(text: str, says: str, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "slopes.csv").write_text(text, encoding="utf-8")
    answer = here("exponents", tmp_path / "slopes.csv", cwd=cwd, check=2)
    assert says in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
