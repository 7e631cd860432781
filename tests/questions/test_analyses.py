"""The analyses on stores with a known truth: what was put in comes out, within the stated intervals, so often."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rbpx.errors import RbpxError
from rbpx.questions.registry import analyses
from tests.support.asking import ask, imported, refused
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
    (supported,) = {row["params"]["regime"]["supported_up_to_k"] for row in asked.rows}
    for row in asked.rows:
        about = row["params"]["regime"]
        if row["k"] <= supported:
            assert about["stands"]
            assert row["alpha"] == pytest.approx(0.1, abs=0.05)
        if row["status"] == "ok" and about["n_misses"]:
            n, misses = 96_000, about["n_misses"]
            p = 1 - misses / n
            expected = math.sqrt(p * (1 - p) / n) / (p * -math.log(p))
            assert about["binomial_sd"] == pytest.approx(expected, rel=1e-6)
    assert supported >= 1000
    assert asked.table().count("holds") > 10


def test_joint_intervals_are_of_the_combined_answers_and_of_one_alone_the_same(drawn: Path) -> None:
    of = {"laws": ["rbp"], "k": 10, "resamples": 20}
    for S, wider in ([2e7], False), ([2e7, 1e9, 1e12], True):
        single, joint = (ask(drawn, "predict", S=S, joint=joint, **of) for joint in (False, True))
        ends = [[(row["lo"], row["hi"]) for row in asked.of_kind("backtest")] for asked in (single, joint)]
        assert ends[0] == ends[1]
        for one, each in zip(single.of_kind("prediction"), joint.of_kind("prediction"), strict=True):
            alike = ("method", "S", "y", "widened", "status")
            assert [one[name] for name in alike] == [each[name] for name in alike]
            is_wider = (each["lo"] < one["lo"], each["hi"] > one["hi"])
            assert is_wider == (wider and one["method"] != "ols",) * 2
            assert each["n_joint"] == (None if one["method"] == "ols" else len(S))


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
    assert "Outside what was measured (10 times the sizes" in asked.words
    near = ask(drawn, "predict", laws=["rbp", "cross_entropy"], S=2e7, resamples=20)
    assert "Outside what was measured" not in near.words
    errors: dict[tuple[str, int | None], list[float]] = {}
    for row in near.of_kind("backtest"):
        if row["method"] == "combined":
            errors.setdefault((row["law"], row["k"]), []).append(abs(row["error"]))
    means = [float(np.mean(values)) for values in errors.values()]
    assert means == sorted(means)  # laws are ranked by the errors of their backtests
    assert len(means) > 5
    of_loss = [row for row in near.rows if (row["law"], row["method"]) == ("cross_entropy", "combined")]
    (answer,), tests = ([row for row in of_loss if row["kind"] == kind] for kind in ("prediction", "backtest"))
    shown = near.table(120, details=False).splitlines()
    assert shown[0].startswith("At 20M parameters cross-entropy will be ")
    for name in ("y", "lo", "hi"):
        assert f"{answer[name]:.3g}" in shown[0]
    off, held = (
        np.mean([abs(row["error"]) for row in tests]),
        sum(row["lo"] <= row["measured"] <= row["hi"] for row in tests),
    )
    assert f"off by {off:.1%} on average, {held} of {len(tests)} intervals held" in shown[0]
    assert sum(" 20M " in line for line in shown[1:]) == len(means)  # a line for each law
    assert max(len(line) for line in shown if line.startswith(" ")) <= 100


def test_plain_rows_of_a_question_have_at_most_24_columns_each_once() -> None:
    for name, each in analyses().items():
        assert 0 < len({*each.plain}) == len(each.plain) <= 24, name


def test_every_method_recovers_the_law_shows_what_it_came_from_and_comes_out_again(drawn: Path, cwd: Path) -> None:
    found = ask(drawn, "fit", laws=["rbp"], k=10, method="all", resamples=200).rows
    assert [row["method"] for row in found] == ["ols", "weighted", "offset", "robust"]
    assert found[0]["params"]["choice"]["form"] in ("power", "either")
    for row in found:
        assert row["alpha_lo"] < 0.1 < (row["alpha_hi"] or 9)
        params = row["params"]
        for name in ("S", "y", "residuals_ln"):
            assert params[name], name
    for row in found[1:3]:
        shown = json.loads(here("show", row["fit_id"], "--store", drawn, cwd=cwd, check=0).stdout)
        assert shown["reproduced"]["largest_relative_difference"] <= 1e-9


def test_the_gap_between_two_texts_is_the_difference_of_their_laws(tmp_path: Path) -> None:
    store = tmp_path / "store"
    write_store(store, Truth(C=6.0, alpha=0.12, shared=0.1), seed=11, n_documents=300, n_tokens=120, dataset="hard")
    write_store(store, Truth(C=3.0, alpha=0.07, shared=0.1), seed=12, n_documents=300, n_tokens=120, dataset="easy")
    asked = ask(store, "gaps", resamples=100, k=[1, 10])
    assert [(row["law"], row["params"]["loss"], row["k"]) for row in asked.rows] == [
        ("gap", "rbp", 1), ("gap", "rbp", 10), ("gap", "cross_entropy", None)
    ]  # fmt: skip
    for row in asked.rows[:2]:
        assert (row["dataset"], row["dataset_b"]) == ("hard", "easy")
        about = row["params"]
        assert about["delta_lo"] < 0.07 - 0.12 < about["delta_hi"] < 0
        assert about["verdict"] == "closes"
        assert len(row["run_ids"]) == 10
    counted = {
        dataset: [
            np.mean(columns_of(store / "runs" / f"{dataset}{S:014d}", "tokens")["greater"] == 0) for S in Truth().S
        ]
        for dataset in ("hard", "easy")
    }
    ratio = np.log(counted["hard"]) / np.log(counted["easy"])
    slope = np.polyfit(np.log(Truth().S), np.log(ratio), 1)[0]
    assert asked.rows[0]["params"]["delta"] == pytest.approx(slope, rel=1e-9)
    assert "hard / easy" in asked.words
    assert max(len(line) for line in asked.table().splitlines() if line.startswith(" ")) <= 80


def test_two_texts_of_many_are_chosen_by_a_sweep(tmp_path: Path, cwd: Path) -> None:
    store, sizes = tmp_path / "store", (1e6, 1e7, 1e8)
    lines = [
        f"{S:g},{dataset},{(1 + at) * S ** -(0.1 + 0.01 * at)!r}" for at, dataset in enumerate("abc") for S in sizes
    ]
    imported(store, "\n".join(["S,dataset,loss_nats", *lines]))
    every = ask(store, "gaps").rows
    assert len({frozenset((row["dataset"], row["dataset_b"])) for row in every}) == 3
    with_files = tmp_path / "conf" / "dataset"
    with_files.mkdir(parents=True)
    for dataset in ("a", "b"):
        (with_files / f"{dataset}.yaml").write_text(f"name: {dataset}\nkind: file\npath: none\n")
    words = ["gaps", "-m", "dataset=a,b", "--config-dir", tmp_path / "conf", "--store", store, "--format", "json"]
    chosen = json.loads(here(*words, cwd=cwd, check=0).stdout)
    assert {row["dataset"] for row in chosen} | {row["dataset_b"] for row in chosen} == {"a", "b"}
    same = {row["fit_id"]: row["alpha"] for row in every}
    assert all(same[row["fit_id"]] == -row["delta"] for row in chosen)


def test_one_text_has_no_gap(drawn: Path) -> None:
    with refused("no two of the requested texts"):
        ask(drawn, "gaps")


# ------------------------------------------------------------------------------------------------------- no law at all


def test_one_document_has_no_interval_and_says_so(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=2, n_documents=1, n_tokens=3000)
    asked = {verb: ask(store, verb, k=10, resamples=50) for verb in ("predict", "emergence")}
    asked["fit"] = ask(store, "fit", laws=["rbp", "cross_entropy"], k=10, resamples=50)
    for row in asked["fit"].rows:
        assert row["status"] == "one_document"
        assert row["alpha"] is not None
        assert (row["alpha_lo"], row["alpha_hi"]) == (None, None)
    assert [verb for verb, each in asked.items() if "nan" in each.words.lower()] == []


def test_two_sizes_are_no_law_for_any_analysis_but_the_one_in_k(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(S=(1000, 10_000)), seed=3)
    assert "drawn on synthetic" in ask(store, "klaw", resamples=50).words
    for verb in ("fit", "regimes", "predict", "emergence"):
        with refused("has the 3 sizes that"):
            ask(store, verb)


def test_shares_of_0_and_1_are_a_status_and_never_a_nan(tmp_path: Path) -> None:
    truth = Truth(C=900.0)  # small models have no token of rank 1; k near V has no miss
    store = write_store(tmp_path / "store", truth, seed=4, n_documents=5, n_tokens=20)
    for verb in ("fit", "klaw", "regimes", "predict", "emergence"):
        words = ask(store, verb, k=[1, 99999], resamples=20).words.lower()  # its rows are JSON without NaN too
        assert "nan" not in words
        assert "inf" not in words.replace("inference", "").replace("information", ""), verb


def test_nothing_that_matches_is_said_in_one_line(drawn: Path) -> None:
    for key, value in (("family", "other"), ("source", "elsewhere"), ("size", "7b")):
        with refused(f"{key}={value}"):
            ask(drawn, "fit", **{key: value})


@pytest.mark.parametrize(
    ("verb", "key", "value", "remedy"),
    [
        ("fit", "method", "best", "known: all, ols"), ("emergence", "n", 0, "as in n=[1, 5]"),
        ("emergence", "n", "x", "as in n=[1, 5]"), ("predict", "S", -1, 'as in S=["1B"'),
        ("predict", "S", "big", 'as in S=["1B"'), ("fit", "family", 7, "was read as"),
        ("fit", "k", 0.5, "as in k=[1, 10, 100]"),
    ],
)  # fmt: skip
def test_a_wrong_choice_of_an_analysis_is_one_line(verb: str, key: str, value: object, remedy: str) -> None:
    with pytest.raises(RbpxError) as refusal:
        ask(Path("none"), verb, **{key: value})
    assert f"{key}={value}" in str(refusal.value)
    assert remedy in str(refusal.value)
