"""The analyses on stores with a known truth: what was put in comes out, within the stated intervals, so often."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rbpx.questions.regimes.figures import k_of_law
from tests.support.asking import ask, imported
from tests.support.composed import here
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of five sizes, 96,000 tokens each."""
    root = tmp_path_factory.mktemp("drawn") / "store"
    write_store(root, Truth(shared=0.1), seed=5, n_documents=400, n_tokens=240)
    return root


def test_the_law_in_k_is_the_line_through_counted_shares_and_recovered_at_every_size(drawn: Path) -> None:
    (*found, joint), (*few, _) = (ask(drawn, "klaw", resamples=n).rows for n in (200, 10))
    assert (joint["law"], joint["params"]["range"]) == ("joint_law", [1, 100])  # as it was drawn
    assert [row["size"] for row in found] == [str(S) for S in Truth().S]
    ks = [1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100]
    for row, without in zip(found, few, strict=True):
        assert (row["law"], row["n_points"], row["params"]["k"]) == ("k_law", 11, ks)
        greater = columns_of(drawn / "runs" / row["run_ids"][0], "tokens")["greater"]
        slope = np.polyfit(np.log(ks), np.log(-np.log([np.mean(greater < k) for k in ks])), 1)[0]
        assert row["alpha"] == pytest.approx(-slope, rel=1e-9)
        assert row["alpha"] == pytest.approx(Truth().beta, abs=0.03)
        worth, of_few = row["params"]["exchange"], without["params"]["exchange"]
        assert worth["lo"] < 10 ** (0.35 / 0.1) < worth["hi"]
        assert of_few | {"lo": None, "hi": None} == of_few  # too few replicates for an interval leave the factor
        assert of_few["factor"] == pytest.approx(worth["factor"], rel=1e-9)


def test_the_law_stands_at_every_k_where_it_was_put_and_ends_where_misses_are_few(drawn: Path) -> None:
    asked = ask(drawn, "regimes", resamples=50)
    ks = [row["k"] for row in asked.rows]
    assert ks[0] == 1
    assert 50_000 < ks[-1] < 100_000
    stands = {row["k"]: row["params"]["regime"]["stands"] for row in asked.rows}
    supported = max(k for k in ks if all(stands[at] for at in ks if at <= k))
    for row in asked.rows:
        about = row["params"]["regime"]
        if row["k"] <= supported:
            assert row["alpha"] == pytest.approx(0.1, abs=0.05)
        if row["status"] == "ok" and about["n_misses"]:
            n, misses = 96_000, about["n_misses"]
            p = 1 - misses / n
            expected = math.sqrt(p * (1 - p) / n) / (p * -math.log(p))
            assert about["binomial_sd"] == pytest.approx(expected, rel=1e-6)
    assert supported >= 1000
    apart = [{"k": k, "stands": k not in (1, 5, 100)} for k in (1, 2, 5, 50, 70, 100, 1000)]
    assert k_of_law(apart) == "2, 50 to 70, 1,000"


@pytest.mark.parametrize("S", [[2e7], [2e7, 1e9, 1e12]], ids=["one", "three"])
def test_joint_intervals_of_several_sizes_are_wider_and_that_of_one_is_the_same(drawn: Path, S: list[float]) -> None:
    asked = (ask(drawn, "predict", S=S, joint=joint, laws=["rbp"], k=10, resamples=20) for joint in (False, True))
    single, joint = ([row for row in each.of_kind("prediction") if row["method"] == "combined"] for each in asked)
    for one, each in zip(single, joint, strict=True):
        assert (each["y"], each["n_joint"]) == (one["y"], len(S))
        assert (each["lo"] < one["lo"], each["hi"] > one["hi"]) == (len(S) > 1,) * 2


def test_predictions_hold_what_a_larger_model_shows_and_say_how_far_they_reach(drawn: Path) -> None:
    asked = ask(drawn, "predict", laws=["rbp"], k=10, S=[2e7, 1e9, 1e12], resamples=50)
    assert list(dict.fromkeys(row["method"] for row in asked.rows)) == ["combined", "power", "offset", "bend", "ols"]
    for method in ("combined", "ols"):
        said = [row for row in asked.of_kind("prediction") if row["method"] == method]
        assert [row["beyond"] for row in said] == pytest.approx([2, 100, 1e5])
        assert ["beyond" in row["reasons"] for row in said] == [False, True, True]
        widths = [math.log(row["hi"] / row["lo"]) for row in said]
        assert widths == sorted(widths)
        for row in said:
            assert row["lo"] < 4.0 * 10**-0.35 * row["S"] ** -0.1 < row["hi"]
            assert row["lo"] < row["y"] < row["hi"]
        tests = [row for row in asked.of_kind("backtest") if row["method"] == method]
        assert [(row["n_fitted"], row["S"]) for row in tests] == [(3, 1_000_000), (3, 10_000_000), (4, 10_000_000)]
        for row in tests:
            assert row["error"] == pytest.approx(row["y"] / row["measured"] - 1, rel=1e-12)
            assert row["held"] == (row["lo"] <= row["measured"] <= row["hi"])
    assert "Outside what was measured (in size, tokens" in asked.words


def test_predict_says_first_what_the_law_with_the_least_error_says(drawn: Path) -> None:
    asked = ask(drawn, "predict", laws=["rbp", "cross_entropy"], S=2e7, resamples=20)
    assert "Outside what was measured" not in asked.words
    combined = [row for row in asked.rows if row["method"] == "combined"]
    errors: dict[tuple[str, int | None], list[float]] = {}
    for row in combined:
        if row["kind"] == "backtest":
            errors.setdefault((row["law"], row["k"]), []).append(abs(row["error"]))
    means = [float(np.mean(values)) for values in errors.values()]
    assert means == sorted(means)
    assert asked.table(120, details=False).startswith("At 20M parameters cross-entropy will be ")


def test_every_method_recovers_the_law_and_comes_out_again(drawn: Path, cwd: Path) -> None:
    found = ask(drawn, "fit", laws=["rbp"], k=10, method="all", resamples=200).rows
    assert [row["method"] for row in found] == ["ols", "weighted", "offset", "robust"]
    assert all(row["alpha_lo"] < 0.1 < (row["alpha_hi"] or 9) for row in found)
    for row in found[1:3]:
        shown = json.loads(here("show", row["fit_id"], "--store", drawn, cwd=cwd, check=0).stdout)
        assert shown["reproduced"]["largest_relative_difference"] <= 1e-9


def test_two_texts_of_many_are_chosen_by_a_sweep(tmp_path: Path, cwd: Path) -> None:
    store = tmp_path / "store"
    lines = [f"{S:g},{text},{S ** -(0.1 + at / 100)!r}" for at, text in enumerate("abc") for S in (1e6, 1e7, 1e8)]
    imported(store, "\n".join(["S,dataset,loss_nats", *lines]))
    folder = tmp_path / "conf" / "dataset"
    folder.mkdir(parents=True)
    for text in "ab":
        (folder / f"{text}.yaml").write_text(f"name: {text}\nkind: file\npath: none\n")
    words = ["gaps", "-m", "dataset=a,b", "--config-dir", folder.parent, "--store", store, "--format", "json"]
    (chosen,) = json.loads(here(*words, cwd=cwd, check=0).stdout)
    assert {chosen["dataset"], chosen["dataset_b"]} == {"a", "b"}
    same = {row["fit_id"]: row["alpha"] for row in ask(store, "gaps").rows}
    assert len(same) == 3
    assert same[chosen["fit_id"]] == -chosen["delta"]


# ------------------------------------------------------------------------------------------------------- no law at all
