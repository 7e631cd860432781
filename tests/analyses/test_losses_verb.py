"""Loss to loss by `fit` and `predict`: imported families and drawn runs on two texts, rows, words and refusals."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.laws.losses.calibration import calibrate
from tests.support.commands import Answer, here
from tests.support.synthetic import Truth, write_store

S = np.geomspace(1e6, 1e9, 7)
K, KAPPA, E_X, E_Y = 200 * 300**-0.9, 0.9, 1.7, 1.4  # where x = 1.7 + 300 S^-.3 and y = 1.4 + 200 S^-.27
ON = "axis=cross_entropy@prose"


def losses(size: float) -> tuple[float, float]:
    return E_X + 300 * size**-0.3, E_Y + 200 * size**-0.27


def off(at: int, family: str) -> float:
    """An error of a model, in percent, that falls nowhere in line."""
    sign = 1 if (at + (family == "b")) % 2 else -1
    return 0.1 * sign * (1 + at % 3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families on one curve, on two texts; the largest of one, and one of a third, on the first text alone."""
    folder = tmp_path_factory.mktemp("losses")
    lines = ["family,S,prose,code,right"]
    for family in ("a", "b"):
        for at, size in enumerate(S * (1 if family == "a" else 1.7)):
            x, y = losses(size)
            y *= 1 + off(at, family) / 100
            lines.append(f"{family},{size:.0f},{x:.9f},{y:.9f},{1 / (1 + y):.9f}")
    lines += [f"a,1e10,{losses(1e10)[0]:.9f},,", f"c,1e8,{losses(1e8)[0]:.9f},,"]
    (folder / "theirs.csv").write_text("\n".join(lines) + "\n")
    texts = "texts={prose: {loss_nats: prose}, code: {loss_nats: code, accuracy: right}}"
    words = ["import", folder / "theirs.csv", "source=them", texts, "--store", folder / "store"]
    here(*words, cwd=folder, check=0, writes=True)
    return folder / "store"


def ask(store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    return here(*words, "--store", store, cwd=cwd, check=check)


def rows(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(store, cwd, *words, "--format", "json").stdout)
    return found


def test_fit_has_a_curve_of_each_family_and_one_of_all(store: Path, cwd: Path) -> None:
    found = rows(store, cwd, "fit", "dataset=code", ON)
    assert [(row["law"], row["family"]) for row in found] == [
        (law, family) for law in ("cross_entropy", "accuracy") for family in ("a", "b", "a + b")
    ]
    for row in found:
        params = row["params"]
        assert (row["axis"], row["form"], row["method"]) == (
            "cross_entropy@prose",
            "loss_to_loss",
            "errors_in_variables",
        )
        assert (row["dataset"], row["dataset_b"]) == ("code", "prose")
        assert row["alpha_lo"] <= KAPPA <= row["alpha_hi"]
        assert params["E_x_lo"] <= E_X
        assert params["covariance"] == {"from": "assumed", "sd_ratio": 1.0, "correlation": 0.0}
        assert set(params["kappa_without_errors"]) == {"in_x", "in_y"}
        assert params["shared"]["n_families"] == 2
        assert params["shared"]["p"] > 0.05
    assert len({row["fit_id"] for row in found}) == len(found)
    kept = ask(store, cwd, "sql", "SELECT count(*) n FROM fits WHERE axis = 'cross_entropy@prose'", "--format", "json")
    assert json.loads(kept.stdout) == [{"n": len(found)}]


def test_models_on_the_other_text_alone_are_foretold_without_S(store: Path, cwd: Path) -> None:
    found = rows(store, cwd, "predict", "dataset=code", ON, "laws=[cross_entropy]", "x=[2.5]")
    told = [row for row in found if row["kind"] == "prediction"]
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
        assert 0 < row["expected_error"] < 0.05
    x = [losses(size)[0] for size in S]
    y = [losses(size)[1] * (1 + off(at, "a") / 100) for at, size in enumerate(S)]
    calibration = calibrate(x, y, losses(1e10)[0])
    assert calibration is not None
    alone = by["a", "a", "combined"]
    (again,) = calibration.at([alone["x"]])
    assert alone["y"] == pytest.approx(again.value, rel=1e-6)
    assert (alone["S"], alone["x"]) == (1e10, pytest.approx(losses(1e10)[0]))
    tests = [row for row in found if row["kind"] == "backtest" and row["family"] == "a"]
    assert min(row["x"] for row in tests) == pytest.approx(min(x))
    assert all(row["error"] == pytest.approx((row["y"] - row["measured"]) / row["measured"]) for row in tests)


def test_one_family_alone_foretells_another_with_a_doubt(store: Path, cwd: Path) -> None:
    found = rows(store, cwd, "predict", "dataset=code", ON, "family=[a,c]", "laws=[cross_entropy]")
    (row,) = [row for row in found if row["kind"] == "prediction" and row["model_family"] == "c"]
    assert "unsupported" in row["reasons"]


def test_families_off_each_other_are_said_to_differ(tmp_path: Path, cwd: Path) -> None:
    lines = ["family,S,prose,code"]
    for family, factor in (("a", 1.0), ("b", 1.1)):
        for at, size in enumerate(S):
            x, y = losses(size)
            lines.append(f"{family},{size:.0f},{x:.9f},{factor * y * (1 + off(at, family) / 100):.9f}")
    (tmp_path / "theirs.csv").write_text("\n".join(lines) + "\n")
    texts = "texts={prose: {loss_nats: prose}, code: {loss_nats: code}}"
    words = ["import", tmp_path / "theirs.csv", "source=them", texts, "--store", tmp_path / "store"]
    here(*words, cwd=tmp_path, check=0, writes=True)
    fitted = {row["family"]: row for row in rows(tmp_path / "store", cwd, "fit", "dataset=code", ON)}
    assert fitted["a + b"]["params"]["shared"]["p"] < 0.05
    assert "families_differ" in fitted["a + b"]["params"]["reasons"]
    assert "families_differ" not in fitted["a"]["params"]["reasons"]
    assert "do not share one curve" in ask(tmp_path / "store", cwd, "fit", "dataset=code", ON).stdout
    told = rows(tmp_path / "store", cwd, "predict", "dataset=code", ON, "x=2.5")
    of_all = [row for row in told if row["kind"] == "prediction" and row["family"] == "a + b"]
    assert ["families_differ" in row["reasons"] for row in of_all] == [True]


@pytest.mark.parametrize("verb", ["fit", "predict"])
@pytest.mark.parametrize("form", ["table", "csv", "md", "tex", "html"])
def test_every_format_has_it(verb: str, form: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / f"page.{form}"
    words = ["--output", str(file)] if form == "html" else []
    answer = here(verb, "dataset=code", ON, "--format", form, *words, "--store", store, cwd=cwd, check=0, writes=True)
    said = file.read_text() if form == "html" else answer.stdout
    assert re.search("cross.entropy", said)
    assert form == "html" or not re.search(r"\bnan\b|None", said)


def test_measured_runs_have_documents_behind_their_covariance(tmp_path: Path, cwd: Path) -> None:
    for dataset, C, seed in (("code", 4.0, 1), ("prose", 3.0, 2)):
        write_store(tmp_path / "store", Truth(C=C, scatter=0.02), seed, dataset=dataset)
    words = ("dataset=code", "k=1", "resamples=60", "laws=[rbp]")
    (apart,) = rows(tmp_path / "store", cwd, "fit", *words, "axis=rbp@prose")
    assert apart["params"]["covariance"]["from"] == "documents"
    assert apart["params"]["covariance"]["correlation"] == 0
    (same,) = rows(tmp_path / "store", cwd, "fit", *words, "axis=cross_entropy@code")
    assert same["params"]["covariance"]["correlation"] > 0.2  # the same documents
    assert len(apart["run_ids"]) == 2 * len(same["run_ids"]) == 10
    measured = ask(tmp_path / "store", cwd, "sql", "SELECT dataset, -ln(rbp) y FROM observations WHERE k = 1 AND n = 1 "
                   "AND ties = 'pessimistic' ORDER BY dataset, non_embedding_params", "--format", "json")  # fmt: skip
    by_text: dict[str, list[float]] = {}
    for row in json.loads(measured.stdout):
        by_text.setdefault(row["dataset"], []).append(row["y"])
    assert apart["params"]["x"] == pytest.approx(by_text["prose"])
    assert apart["params"]["y"] == pytest.approx(by_text["code"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "axis=cross_entropy@prosa"), "axis=cross_entropy@prosa: .* did you mean prose"),
        (("fit", "axis=cros@prose"), "axis=cros@prose is unknown"),
        (("klaw", ON), "axis=cross_entropy@prose is not for this verb, .* it is for: fit, predict"),
        (("predict", "axis=D"), "axis=D is not for this verb"),
        (("predict", "x=2"), "x= is what models show on another text"),
        (("predict", ON, "S=1e9"), "S= is of laws in size or tokens"),
        (("predict", ON, "register=june"), "register= is of laws in size or tokens"),
        (("fit", ON, "method=offset"), "method= is of laws in size or tokens"),
        (("report", ON), "is not of a report"),
        (("fit", "axis=accuracy@code", "dataset=prose", "laws=[cross_entropy]", "family=c"), "no runs|measured on"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(words: tuple[str, ...], said: str, store: Path, cwd: Path) -> None:
    answer = ask(store, cwd, *words, check=2)
    assert re.search(said, answer.stderr)
    assert answer.stderr.count("\n") == 1
