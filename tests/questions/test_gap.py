"""The gap between two texts against closed forms and simulated pairs of laws."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.laws.power.uncertainty import holm
from rbpx.questions.gaps.law import fit_gap, settle
from rbpx.status import Status
from tests.support.asking import ask, imported

S = np.array([1e4, 1e5, 1e6, 1e7, 1e8])
TEXTS = ("c4_loss_nats", "hellaswag_bpb", "arc_challenge_bpb", "piqa_bpb", "csqa_bpb")  # of the OLMo ladder


def law(C: float, alpha: float) -> Any:
    return C * S**-alpha


def test_the_gap_of_two_exact_laws_is_the_difference_of_their_exponents() -> None:
    gap = fit_gap(S, law(9.0, 0.10), law(4.0, 0.06))
    assert (gap.swapped, gap.fit.status) == (False, Status.ok)
    assert gap.S_ref == pytest.approx(1e6)
    assert gap.delta.value == pytest.approx(0.06 - 0.10, rel=1e-9)
    assert gap.ratio.value == pytest.approx(9 / 4 * 1e6**-0.04, rel=1e-9)
    other = fit_gap(S, law(4.0, 0.06), law(9.0, 0.10))  # a is the text with the higher loss
    assert (other.swapped, other.delta.value, other.ratio.value) == (True, gap.delta.value, gap.ratio.value)
    verdicts = [each.verdict for each in (gap, fit_gap(S, law(9.0, 0.05), law(4.0, 0.10)))]
    assert verdicts == ["closes", "opens"]


@pytest.mark.parametrize("bad", [0.0, math.inf, math.nan])
def test_a_loss_without_a_ratio_is_a_status(bad: float) -> None:
    a = law(9.0, 0.1)
    a[2] = bad
    gap = fit_gap(S, a, law(4.0, 0.06))
    assert gap.fit.status is Status.not_positive
    assert (gap.delta.value, gap.ratio.value, gap.verdict) == (None, None, None)


def test_the_verdict_follows_the_adjusted_p() -> None:
    rng = np.random.default_rng(6)
    gap = fit_gap(S, law(9.0, 0.10) * np.exp(rng.normal(0, 0.01, 5)), law(4.0, 0.06))
    assert gap.p < 0.01
    assert (gap.verdict, gap.fit.status) == ("closes", Status.ok)
    unsure = settle(gap, 0.3)
    assert (unsure.verdict, unsure.fit.status) == ("may close", Status.no_trend)
    flat = fit_gap(S, 2 * np.exp(rng.normal(0, 0.01, 5)), np.ones(5))
    assert (flat.verdict, flat.fit.reasons) == ("parallel", ("no_trend",))


def test_all_pairs_of_a_request_are_adjusted_together(shared_data: Path, tmp_path: Path) -> None:
    """Five texts of the OLMo ladder of ten times Chinchilla's tokens, four sizes: 10 pairs."""
    with (shared_data / "reference" / "olmo_ladder.csv").open(newline="") as lines:
        last = {row["run"]: row for row in csv.DictReader(lines) if row["run"].endswith("-10xC")}
    rows = [f"10xC,{text},{row['size']},{row['params']},{row[text]}" for row in last.values() for text in TEXTS]
    store = imported(tmp_path / "store", "\n".join(["revision,dataset,size,S,loss_nats", *rows]), "olmo", family="olmo")
    asked = ask(store, "gaps", laws=["cross_entropy"])
    found = [row["params"] for row in asked.rows]
    assert len(found) == 10
    assert [about["p_adjusted"] for about in found] == pytest.approx(holm([about["p"] for about in found]))
    for about in found:
        line = linregress(np.log(about["S"]), np.log(about["y"]))
        assert (about["delta"], about["p"]) == pytest.approx((line.slope, line.pvalue), rel=1e-5)
        assert (about["p_adjusted"] < 0.05) == (about["verdict"] in ("closes", "opens"))
    assert any(about["p"] < 0.05 < about["p_adjusted"] for about in found)
    opens, closes = (sum(about["verdict"] == verdict for about in found) for verdict in ("opens", "closes"))
    assert f"Of 10 gaps {opens} open and {closes} close with size (p below 0.05 after Holm over" in asked.words
