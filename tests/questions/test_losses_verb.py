"""Loss to loss by `fit` and `predict`: imported families and drawn runs on two texts, rows, words and refusals."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.display.chart.figure import Figure
from rbpx.laws.losses.calibration import calibrate
from rbpx.store.sql import connected_once
from tests.support.asking import Asked, Rows, ask, imported, refused
from tests.support.losses import E_X, E_Y, KAPPA, K, S, losses, off, table
from tests.support.stores import cell_records, columns_of
from tests.support.synthetic import Truth, write_store

ON = "cross_entropy@prose"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two families on one curve, on two texts; the largest of one, and one of a third, on the first text alone."""
    lines = [table(), f"a,1e10,{losses(1e10)[0]:.9f},,", f"c,1e8,{losses(1e8)[0]:.9f},,"]
    texts = {"prose": {"loss_nats": "prose"}, "code": {"loss_nats": "code", "accuracy": "right"}}
    store = imported(tmp_path_factory.mktemp("losses") / "store", "\n".join(lines), family=None, texts=texts)
    with connected_once():
        yield store


def asked(store: Path, verb: str, **keys: Any) -> Asked:
    return ask(store, verb, **{"dataset": "code", "axis": ON, "laws": ["cross_entropy"], **keys})


@pytest.fixture(scope="module")
def answer(store: Path) -> Asked:
    return asked(store, "fit")


@pytest.fixture(scope="module")
def fitted(answer: Asked) -> Rows:
    return answer.rows


def test_fit_has_a_curve_of_each_family_and_one_of_all(fitted: Rows) -> None:
    assert [row["family"] for row in fitted] == ["a", "b", "a + b"]
    for row in fitted:
        params = row["params"]
        assert (row["axis"], row["form"], row["method"]) == (ON, "loss_to_loss", "errors_in_variables")
        assert (row["law"], row["dataset"], row["dataset_b"]) == ("cross_entropy", "code", "prose")
        assert row["alpha_lo"] <= KAPPA <= row["alpha_hi"]
        assert params["E_x_lo"] <= E_X
        assert params["covariance"] == {"from": "assumed", "sd_ratio": 1.0, "correlation": 0.0}
        assert set(params["kappa_without_errors"]) == {"in_x", "in_y"}
        assert params["shared"]["n_families"] == 2
        assert params["shared"]["p"] > 0.05
    assert len({row["fit_id"] for row in fitted}) == len(fitted)


def test_a_figure_has_what_each_model_shows_on_both_texts(answer: Asked) -> None:
    (result,) = answer.results
    (figure,) = result.figures()
    assert isinstance(figure, Figure)
    shown = [(row["series"], row["x"], row["y"]) for row in figure.values.records()]
    for at, size in enumerate(S):
        x, y = losses(size)
        assert ("a", pytest.approx(x), pytest.approx(y * (1 + off(at, "a") / 100))) in shown


def test_models_on_the_other_text_alone_are_foretold_without_S(store: Path) -> None:
    found = asked(store, "predict", x=[2.5])
    told = found.of_kind("prediction")
    by = {(row["model_family"], row["family"], row["method"]): row for row in told}
    assert set(by) == {
        ("a", "a", "combined"),
        ("a", "a + b", "shared"),
        ("c", "a + b", "combined"),
        *((None, family, "combined") for family in "ab"),
        (None, "a + b", "shared"),
    }
    for row in told:
        assert row["lo"] < E_Y + K * (row["x"] - E_X) ** KAPPA < row["hi"]
    x = [losses(size)[0] for size in S]
    y = [losses(size)[1] * (1 + off(at, "a") / 100) for at, size in enumerate(S)]
    calibration = calibrate(x, y, losses(1e10)[0])
    assert calibration is not None
    alone = by["a", "a", "combined"]
    (again,) = calibration.at([alone["x"]])
    assert alone["y"] == pytest.approx(again.value, rel=1e-6)
    assert (alone["S"], alone["x"]) == (1e10, pytest.approx(losses(1e10)[0]))
    tests = [row for row in found.of_kind("backtest") if row["family"] == "a"]
    assert min(row["x"] for row in tests) == pytest.approx(min(x))
    assert all(row["error"] == pytest.approx((row["y"] - row["measured"]) / row["measured"]) for row in tests)


def test_one_family_alone_foretells_another_with_a_doubt(store: Path) -> None:
    found = asked(store, "predict", family=["a", "c"]).of_kind("prediction")
    (row,) = [row for row in found if row["model_family"] == "c"]
    assert "unsupported" in row["reasons"]


def test_measured_runs_have_documents_behind_their_covariance(tmp_path: Path) -> None:
    for dataset, C, seed in (("code", 4.0, 1), ("prose", 3.0, 2)):
        write_store(tmp_path / "store", Truth(C=C, scatter=0.02), seed, dataset=dataset)
    with connected_once():
        (apart,), (same,) = (
            asked(tmp_path / "store", "fit", k=1, laws=["rbp"], resamples=60, axis=axis).rows
            for axis in ("rbp@prose", "cross_entropy@code")
        )
    assert apart["params"]["covariance"]["from"] == "documents"
    assert apart["params"]["covariance"]["correlation"] == 0
    assert same["params"]["covariance"]["correlation"] > 0.2  # the same documents
    assert len(apart["run_ids"]) == 2 * len(same["run_ids"]) == 10
    for side, dataset in (("x", "prose"), ("y", "code")):
        runs = [record for record in cell_records(tmp_path / "store") if record["dataset"] == dataset]
        of_size = {
            int(record["size"]): columns_of(tmp_path / "store" / "runs" / record["run_id"], "tokens")["greater"]
            for record in runs
        }
        counted = [-np.log((of_size[size] == 0).mean()) for size in sorted(of_size)]
        assert apart["params"][side] == pytest.approx(counted)


@pytest.mark.parametrize(
    ("verb", "keys", "said"),
    [
        ("fit", {"axis": "cross_entropy@prosa"}, ("axis=cross_entropy@prosa: ", "did you mean prose")),
        ("fit", {"axis": "cros@prose"}, ("axis=cros@prose is unknown",)),
        ("klaw", {"axis": ON}, ("axis=cross_entropy@prose is not for this verb", "whose laws are in any")),
        ("predict", {"axis": "D"}, ("axis=D is not for this verb",)),
        ("predict", {"axis": "S", "x": [2]}, ("x= is what models show on another text",)),
        ("predict", {"S": [1e9]}, ("S= is of laws in size or tokens",)),
        ("predict", {"register": "june"}, ("register= is of laws in size or tokens",)),
        ("fit", {"method": "offset"}, ("method= is of laws in size or tokens",)),
        (
            "fit",
            {"axis": "accuracy@code", "dataset": "prose", "family": ["c"]},
            ("no model was measured alike on prose and on code",),
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(
    verb: str, keys: Mapping[str, Any], said: tuple[str, ...], store: Path
) -> None:
    with refused(*said):
        asked(store, verb, **keys)
