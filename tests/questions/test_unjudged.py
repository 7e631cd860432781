"""No row passes where the combined answer of its law does not, where it has no number, or where nobody judged it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.questions.render import plain_rows
from tests.support import repeats
from tests.support.asking import ask, imported
from tests.support.surfaces import grid, law


def of_sizes(store: Path, S: np.ndarray, y: np.ndarray) -> Path:
    """Losses by size."""
    return imported(store, {"S": S, "loss_nats": y}, dataset="prose")


@pytest.mark.parametrize(
    ("decades", "off", "says"), [(0.5, 0.0, None), (2.0, 0.06, "intervals_missed"), (2.0, 0.0, None)]
)
def test_no_form_and_no_method_passes_where_the_combined_answer_does_not(
    decades: float, off: float, says: str | None, tmp_path: Path
) -> None:
    """Sizes that lie almost on a power law, the largest of them off it by a share."""
    S = 1e7 * np.logspace(0, decades, 7)
    y = 8 * S**-0.1 * np.exp(0.003 * np.random.default_rng(1).standard_normal(7))
    y[-1] *= 1 + off
    store = of_sizes(tmp_path / "store", S, y)
    asked = ask(store, "predict", S=[2e7 * 10**decades, 1e12], method=["weighted", "ols", "robust"])
    rows = asked.of_kind("prediction")
    methods = {"combined", "power", "offset", "bend", "ols", "robust"}
    assert {row["method"] for row in rows} - {"without_largest"} == methods
    wide = [row["remarks"] for row in rows if row["method"] == "combined"]
    assert wide == [["barely_determined"] if decades < 2 else []] * 2
    assert ("less than 2 decades" in asked.words) is (decades < 2)
    for at in {row["S"] for row in rows}:
        of_S = [row for row in rows if row["S"] == at]
        (combined,) = [set(row["reasons"]) for row in of_S if row["method"] == "combined"]
        within = [row for row in of_S if row["method"] in ("power", "offset", "bend")]
        assert {row["status"] for row in within} == {None}  # nobody judges a part of the average
        assert all(combined <= set(row["reasons"]) for row in of_S if row not in within)
        assert says is None or says in combined
        assert not combined or "ok" not in {row["status"] for row in of_S}
    near = {row["status"] for row in rows if row["S"] < 1e12 and row["method"] in ("combined", "without_largest")}
    assert says is not None or near == {"ok"}


def test_a_method_that_is_asked_for_is_judged_by_its_own_backtests_where_the_average_passes(tmp_path: Path) -> None:
    """Losses towards a floor: the average over forms holds it, and a power law misses more than a fifth of them."""
    S = 1e7 * np.logspace(0, 2.5, 8)
    y = (1.7 + 60 * S**-0.25) * np.exp(0.001 * np.random.default_rng(2).standard_normal(8))
    store = of_sizes(tmp_path / "store", S, y)
    for keys, plain in (({}, {"combined"}), ({"method": "ols"}, {"combined", "ols"})):
        asked = ask(store, "predict", S=[1e10], **keys)
        rows = {row["method"]: row for row in asked.of_kind("prediction")}
        assert np.mean([row["held"] for row in asked.of_kind("backtest") if row["method"] == "ols"]) < 0.8
        assert rows["combined"]["status"] == "ok"
        assert {"bends", "intervals_missed"} <= set(rows["ols"]["reasons"])
        assert {row["method"] for row in plain_rows("predict", asked.results)} == plain


def test_a_form_of_a_surface_is_judged_by_itself_and_stands_beside_the_answer(tmp_path: Path) -> None:
    store = runs(tmp_path / "store")
    fits = {row["form"]: row for row in ask(store, "surface", form=["chinchilla", "kaplan"], resamples=20).rows}
    asked = ask(store, "predict", S=[1e10], D=[1e11], resamples=20)
    rows = {row["method"]: row for row in asked.of_kind("prediction")}
    assert rows["combined"]["status"] == fits["chinchilla"]["status"] == "ok"
    assert fits["kaplan"]["reasons"] == rows["kaplan"]["reasons"] == ["bends", "barely_determined"]
    assert {row["method"] for row in plain_rows("predict", asked.results)} == {"combined"}
    typed = ask(store, "predict", S=[1e10], D=[1e11], form="kaplan", resamples=20)
    plain = plain_rows("predict", typed.results)
    assert {row["method"]: row["status"] for row in plain if row["kind"] == "prediction"} == {
        "combined": "ok",
        "kaplan": "bends",
    }
    for row in typed.of_kind("prediction"):
        assert (row["y"], row["lo"], row["hi"]) == tuple(rows[row["method"]][end] for end in ("y", "lo", "hi"))


def test_decide_says_by_a_form_what_surface_and_predict_say_by_it(tmp_path: Path) -> None:
    store, keys = runs(tmp_path / "store"), {"form": "kaplan", "resamples": 20}
    (fit,) = ask(store, "surface", flops=[1e22], **keys).rows
    predicted = ask(store, "predict", S=[1e10], D=[1e11], **keys).of_kind("prediction")
    (at,) = [row for row in predicted if row["method"] == "kaplan"]
    decided = ask(store, "decide", flops=[1e22], S=[1e10], D=[1e11], **keys)
    (best,), (asked,) = (
        [row for row in decided.of_kind(kind) if row["method"] == "kaplan"] for kind in ("best", "asked")
    )
    ends = ("", "_lo", "_hi")
    for name in ("S", "D"):
        assert [best[f"{name}{end}"] for end in ends] == [fit["optima"][0][f"{name}{end}"] for end in ends]
    assert [asked[f"y{end}"] for end in ends] == [at["y"], at["lo"], at["hi"]]
    assert best["status"] == asked["status"] == fit["status"] == "bends"
    assert next(row for row in decided.of_kind("best") if row["method"] == "combined")["status"] != "bends"


def test_runs_that_repeat_their_text_are_predicted_where_others_did(tmp_path: Path) -> None:
    drawn = repeats.draw(repeats.PAPER, repeats.grid(), seed=3)
    columns = {"S": drawn.S_N, "D": drawn.D_N, "unique_tokens": drawn.U_N, "loss_nats": drawn.y_N}
    store = imported(tmp_path / "store", columns, dataset="c4")
    targets: dict[str, Any] = {"S": [1e9, 4e9], "D": [2e10, 6e10], "grid": True, "resamples": 20}
    unique, repeated = (ask(store, "predict", **targets, unique_tokens=U) for U in (None, 2e9))
    of_unique, of_repeated = (
        [row for row in asked.of_kind("prediction") if row["method"] == "combined"] for asked in (unique, repeated)
    )
    points = [(1e9, 2e10), (1e9, 6e10), (4e9, 2e10), (4e9, 6e10)]
    for fresh, again, (S, D) in zip(of_unique, of_repeated, points, strict=True):
        for row, U in ((fresh, D), (again, 2e9)):
            assert (row["S"], row["D"]) == (S, D)
            assert row["lo"] < repeats.plain_law(repeats.PAPER, *np.array([[S], [D], [U]]))[0] < row["hi"]
        assert again["y"] > fresh["y"]
    assert "At 1B parameters and 20B tokens, 2B of them unique, cross-entropy will be" in repeated.words


def runs(store: Path) -> Path:
    """A grid of sizes and tokens about the law."""
    S, D = grid(4, 3)
    y = law(S, D) * np.exp(0.004 * np.random.default_rng(3).standard_normal(len(S)))
    return imported(store, {"S": S, "D": D, "loss_nats": y}, dataset="prose")


def test_at_a_size_that_has_a_run_predict_says_what_was_measured(tmp_path: Path) -> None:
    store = of_sizes(tmp_path / "store", np.array([1e7, 2e7, 4e7, 8e7]), np.array([3.5, 3.25, 3.02, 2.816]))
    words = ask(store, "predict", S=[4e7, 1e8]).words
    assert words.count("easured at") == 1
    assert "Measured at 40M parameters: cross-entropy 3.02." in words


def test_a_prediction_above_what_a_smaller_model_has_says_so_and_one_of_any_value_does_not_pass(tmp_path: Path) -> None:
    S = np.geomspace(3e3, 3e6, 7)
    store = of_sizes(tmp_path / "store", S, np.array([6.73, 6.72, 6.68, 6.6, 6.5, 6.1, 5.57]))
    answer = ask(store, "predict", S=[3e7])
    assert answer.rows[0]["y"] > 5.57
    assert "cross-entropy is 5.57 at 3M parameters, less than predicted at 30M" in answer.words
    tenth = of_sizes(tmp_path / "tenth", S, np.array([2.5, 2.49, 2.45, 2.4, 2.2, 1.4, 0.8]))
    row = ask(tenth, "predict", S=[3e7]).rows[0]
    assert row["hi"] > 10 * row["lo"]
    assert "barely_determined" in row["reasons"]
