"""Largest runs that the others do not predict: named, and each question is answered again as if they were not."""

from pathlib import Path

import numpy as np
import pytest

from rbpx.questions.predict.rows import answer_sentence
from tests.support.asking import Asked, Rows, ask, imported
from tests.support.surfaces import law

ABOVE, N = 0.03, 5  # the largest budget of 5 sizes lies so far above
POINT = {"S": 3e9, "D": 3e10}
SURFACES = {
    "decide": {"flops": 3e21, "inference_tokens": 1e12, **POINT},
    "predict": POINT,
    "surface": {},
}


def of_budgets(store: Path, n: int, above: float = ABOVE) -> Path:
    """The n first of 25 runs on 5 budgets."""
    C = np.repeat(1e18 * 4.0 ** np.arange(5), N)
    S = np.sqrt(C / 120) * np.tile(np.geomspace(0.25, 4, N), 5)
    y = law(S, C / 6 / S) * np.exp(0.003 * np.random.default_rng(1).standard_normal(25))
    y[-N:] *= 1 + above
    lines = [f"r{i},{S[i]:.0f},{C[i] / 6 / S[i]:.0f},c4,{y[i].item()!r}" for i in range(n)]
    return imported(store, "\n".join(["model,S,D,dataset,loss_nats", *lines]), family="ours")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    store = of_budgets(tmp_path_factory.mktemp("all") / "store", 25)
    return {verb: ask(store, verb, resamples=20, **keys) for verb, keys in SURFACES.items()}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """The same of a store in which these runs never were."""
    store = of_budgets(tmp_path_factory.mktemp("left") / "store", 25 - N)
    return {verb: ask(store, verb, resamples=20, **SURFACES[verb]) for verb in ("decide", "predict")}


NUMBERS = "n_points E E_lo E_hi S S_lo S_hi D y y_lo y_hi lo hi saved widened".split()


def by(rows: Rows, method: str, kind: str) -> dict[str, float]:
    """The numbers of the one row of a kind and method."""
    (row,) = [row for row in rows if (row["kind"], row["method"]) == (kind, method)]
    return {name: row[name] for name in NUMBERS if row.get(name) is not None}


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("decide", "runs"), ("decide", "best"), ("decide", "served"), ("decide", "asked"), ("predict", "prediction")],
)
def test_without_them_the_answer_is_that_of_a_store_without_them(
    verb: str, kind: str, asked: dict[str, Asked], left: dict[str, Asked]
) -> None:
    expected = by(left[verb].rows, "combined", kind)
    assert by(asked[verb].rows, "without_largest", kind) == pytest.approx(expected, rel=1e-6)
    assert [row for row in left[verb].rows if row["method"] == "without_largest"] == []


@pytest.mark.parametrize("verb", SURFACES)
def test_they_are_named_with_how_far_they_lie_and_every_answer_is_doubted(verb: str, asked: dict[str, Asked]) -> None:
    of = asked[verb]
    assert "The 5 largest runs, " in of.words
    share = float(of.words.split("% above what the others predict")[0].split()[-1]) / 100
    assert share == pytest.approx(ABOVE, abs=0.005)
    answers = [row for row in of.rows if row.get("kind") in (None, "runs", "best", "served", "asked", "prediction")]
    assert all("intervals_missed" in (row.get("reasons") or row["params"]["reasons"]) for row in answers)


def test_decide_says_both_answers_and_not_that_smaller_runs_predicted_the_largest(asked: dict[str, Asked]) -> None:
    of, S = asked["decide"], by(asked["decide"].rows, "without_largest", "best")["S"]
    told = [*of.results[0].sentences, *of.results[0].notes]
    assert not any("smaller runs predicted" in each for each in told)
    assert any(f"ithout them, train {S / 1e9:.3g}B parameters" in each for each in told)
    assert "best without the largest" in of.table(120)


def test_largest_runs_that_are_left_out_one_by_one_make_a_status_too(tmp_path: Path) -> None:
    """Three of the largest budget that diverged are no runs of the same law, and what is left does not reach them."""
    S, D = (each.ravel() for each in np.meshgrid(1e7 * np.geomspace(1, 300, 5), 6e8 * np.geomspace(1, 60, 6)))
    y = law(S, D) * np.exp(0.003 * np.random.default_rng(1).standard_normal(30))
    y[np.argsort(S * D)[-2:]] *= 1.2
    store = imported(tmp_path / "store", {"S": S, "D": D, "loss_nats": y}, dataset="c4")
    of = ask(store, "decide", resamples=20)
    assert len(of.of_kind("outlier")) == 2
    assert "intervals_missed" in of.of_kind("best")[0]["reasons"]
    assert (
        "predicted from smaller runs, too many of the larger ones lie outside their 95 % intervals"
        in of.results[0].sentences[0]
    )


def ladder(store: Path, tokens: list[float], y: np.ndarray, n: int = 8) -> Path:
    """Models of one axis, the n first."""
    S = 1e7 * np.geomspace(1, 1000, 8)
    lines = [f"m{i},{S[i]:.0f},{tokens[i]:.0f},c4,{y[i].item()!r}" for i in range(n)]
    return imported(store, "\n".join(["model,S,D,dataset,loss_nats", *lines]))


SCATTERED = 30 * np.geomspace(1, 1000, 8) ** -0.12 * np.exp(1e-3 * np.random.default_rng(0).standard_normal(8))
LADDERS = {
    "fewer tokens": ([3e11] * 7 + [1e11], SCATTERED, 1, "saw fewer tokens than the smaller announce"),
    "more tokens": ([3e11] * 6 + [9e11] * 2, SCATTERED, 2, "saw more tokens than the smaller announce"),
    "intervals_missed": ([3e11] * 8, SCATTERED * np.r_[np.ones(7), 1.1], 1, "lies off what the others predict: cross-"),
}


@pytest.mark.parametrize("status", LADDERS)
def test_along_one_axis_the_largest_are_named_and_left_out_beside(status: str, tmp_path: Path) -> None:
    tokens, y, n, said = LADDERS[status]
    of = ask(ladder(tmp_path / "all", tokens, y), "predict", S=1e11, resamples=20)
    rest = ask(ladder(tmp_path / "left", tokens, y, 8 - n), "predict", S=1e11, resamples=20)
    expected = by(rest.rows, "combined", "prediction")
    assert by(of.rows, "without_largest", "prediction") == pytest.approx(expected, rel=1e-6)
    judged = [row["reasons"] for row in of.of_kind("prediction") if row["status"] is not None]
    assert all(status.split()[-1] in reasons for reasons in judged)
    assert f"{'The largest run, ' if n == 1 else 'The 2 largest runs, '}" in of.words
    assert said in of.words
    assert (said in ask(tmp_path / "all", "fit", resamples=20).words) == ("tokens" in said)
    assert f"; without {'it' if n == 1 else 'them'} at 100B parameters cross-entropy will be" in of.words


def test_a_law_in_size_alone_of_tokens_without_pattern_is_answered_by_both(tmp_path: Path) -> None:
    S = 1e7 * np.geomspace(1, 1000, 8)
    D = S * np.array([100.0, 8, 60, 5, 120, 12, 90, 7])  # of which a line of ln D on ln S explains the rise
    y = (1.8 + 480 * S**-0.347 + 2100 * D**-0.367) * np.exp(1e-3 * np.random.default_rng(0).standard_normal(8))
    store = ladder(tmp_path / "store", D.tolist(), y)
    (fit,) = ask(store, "fit", laws=["cross_entropy"], resamples=20).rows
    assert "tokens" in fit["params"]["reasons"]
    row = ask(store, "predict", S=3e10, laws=["cross_entropy"], resamples=20).rows[0]
    slope, level = np.polyfit(np.log(S), np.log(D), 1)
    assert row["D"] == pytest.approx(np.exp(level + slope * np.log(3e10)), rel=1e-6)
    truth = 1.8 + 480 * 3e10**-0.347 + 2100 * row["D"] ** -0.367
    assert row["lo"] < truth < row["hi"]
    assert row["y"] == pytest.approx(truth, rel=0.02)
    assert set(row["weights"]) <= {"chinchilla", "kaplan"}
    assert "tokens" not in row["reasons"]


@pytest.mark.parametrize("of_size", [0.0, 1.0])
def test_fixed_tokens_and_fixed_tokens_per_parameter_follow_size(of_size: float, tmp_path: Path) -> None:
    S = 1e7 * np.geomspace(1, 1000, 8)
    store = ladder(tmp_path / "store", (3e11 * (S / S[0]) ** of_size).tolist(), SCATTERED)
    (fit,) = ask(store, "fit", laws=["cross_entropy"], resamples=20).rows
    row, *others = ask(store, "predict", S=1e11, laws=["cross_entropy"], resamples=20).rows
    assert (fit["status"], row["status"], row.get("D")) == ("ok", "ok", None)
    assert "without_largest" not in {other["method"] for other in others}


@pytest.mark.parametrize(("beyond", "D", "lower"), [(9.0, 1e12, True), (7.0, 1e12, False), (9.0, None, False)])
def test_far_out_in_size_and_tokens_the_answer_says_that_larger_runs_came_out_lower(
    beyond: float, D: float | None, lower: bool
) -> None:
    known = {"law": "cross_entropy", "k": None, "kind": "prediction", "status": "ok", "S": 1e10, "beyond": beyond}
    known |= {"y": 2.0, "lo": 1.9, "hi": 2.1, "n_intervals": None, "n_inside": None, "mean_error": None}
    (said,) = answer_sentence([known | {"D": D, "widened": 1.0}])
    assert ("larger runs have come out some 1 % lower than such predictions" in said) is lower


def test_what_passes_because_its_interval_was_widened_says_so(tmp_path: Path) -> None:
    """Of a - b ln S five of ten intervals hold by the forms, and eight as wide as they are given."""
    S = np.geomspace(1e7, 1e10, 7)
    y = 30 * (3.5 - 0.2 * np.log(S / 1e7)) * np.exp(0.002 * np.random.default_rng(5).standard_normal(7))
    of = ask(imported(tmp_path / "store", {"S": S, "loss_nats": y}, dataset="c4"), "predict", S=1e11)
    row, tests = of.of_kind("prediction")[0], [row for row in of.of_kind("backtest") if row["method"] == "combined"]
    assert (row["status"], row["widened"] > 1.5, sum(test["held"] for test in tests)) == ("ok", True, 8)
    assert f"widened {row['widened']:.1f} times by its backtests: " in of.results[0].sentences[0]
    assert "every check passes at that width; " in of.results[0].sentences[0]
    assert " widened " in of.table(100, details=False).split("Predictions for new models")[1]
