"""Exponents beside each other: from the store and from a file of published slopes, against plain regressions."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.exponents.analysis import mean_over
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
