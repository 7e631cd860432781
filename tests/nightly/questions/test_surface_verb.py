"""The verb surface on drawn, imported and published trainings: rows, fits, optima and statuses by plainer ways."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import Answer, here
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface()
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def ask(store: Path, cwd: Path, verb: str, *words: object, check: int = 0) -> Answer:
    return here(verb, *words, "--store", store, cwd=cwd, check=check)


def rows(store: Path, cwd: Path, verb: str, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(store, cwd, verb, *words, "--format", "json", "--details").stdout)
    return found


def written(path: Path, columns: Sequence[str], values: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(values)
    return path


def huber(r: float, delta: float) -> float:
    return r**2 / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured grid of 20 trainings."""
    root = tmp_path_factory.mktemp("surface") / "store"
    write_surface(root, TRUTH, 1)
    return root


@pytest.fixture(scope="module")
def found(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Its surfaces by two forms."""
    words = ["form=[chinchilla,kaplan]", "laws=[rbp,cross_entropy]", "k=1", "budgets=[1e14,1e16]", "resamples=60"]
    return rows(drawn, tmp_path_factory.mktemp("empty"), "surface", *words)


def test_a_row_for_each_quantity_and_form_has_the_promised_columns(found: list[dict[str, Any]]) -> None:
    what = [(row["law"], row["k"], row["form"]) for row in found]
    forms = ("chinchilla", "kaplan")
    assert what == [(law, k, form) for law, k in (("rbp", 1), ("cross_entropy", None)) for form in forms]
    for row in found:
        assert (row["source"], row["family"], row["dataset"]) == ("measured", "grid", "synthetic")
        assert (row["objective_name"], row["delta"], row["n_points"]) == ("log_huber", 0.001, 20)
        assert {f"{name}{end}" for name in ("A", "B", "E", "alpha", "beta") for end in ("", "_lo", "_hi")} <= row.keys()
    kaplan = found[1]
    assert kaplan["A"] is kaplan["alpha"] is kaplan["E_lo"] is None
    assert set(kaplan["params"]["constants"]) == {"N_c", "D_c", "alpha_N", "alpha_D"}


def test_fits_are_kept_by_form_and_a_refit_replaces_its_own(
    drawn: Path, cwd: Path, found: list[dict[str, Any]]
) -> None:
    query = "SELECT fit_id, law, form, objective_name, delta, method, n_points FROM fits ORDER BY ALL"

    def kept() -> list[tuple[Any, ...]]:
        return [tuple(r.values()) for r in json.loads(ask(drawn, cwd, "sql", query, "--format", "json").stdout)]

    names = ("fit_id", "law", "form", "objective_name", "delta", "method", "n_points")
    of_found = sorted(tuple(row[name] for name in names) for row in found)
    before = kept()
    assert [row for row in before if row in of_found] == of_found
    (again,) = rows(drawn, cwd, "surface", "laws=[cross_entropy]", "resamples=60")
    assert again["fit_id"] == found[2]["fit_id"]
    assert kept() == before
    (other,) = rows(drawn, cwd, "surface", "laws=[cross_entropy]", "resamples=1", "objective=huber", "delta=0.01")
    assert other["fit_id"] != again["fit_id"]
    assert len(kept()) == len(before) + 1


def test_states_of_a_training_beside_finished_models_are_said_and_can_be_left_out(tmp_path: Path, cwd: Path) -> None:
    root = tmp_path / "store"
    long = [(640_000, D) for D in (10**6, 3 * 10**6, 9 * 10**6)]
    write_surface(root, TRUTH, 1, pairs=long, states=True, n_documents=5, n_tokens=40)
    finished = [(S, D) for S in (10_000, 40_000, 160_000) for D in (10**6, 3 * 10**6, 9 * 10**6)]
    write_surface(root, TRUTH, 2, pairs=finished, n_documents=5, n_tokens=40)
    words = ("laws=[cross_entropy]", "resamples=1")
    (row,) = rows(root, cwd, "surface", *words)
    assert "mixed_checkpoints" in row["reasons"]
    assert (row["n_points"], row["n_runs"]) == (12, 10)
    (last,) = rows(root, cwd, "surface", *words, "checkpoints=last")
    assert "mixed_checkpoints" not in last["reasons"]
    assert (last["n_points"], last["n_runs"]) == (10, 10)
    assert last["fit_id"] != row["fit_id"]


def test_the_mean_of_the_last_checkpoints_stands_for_a_training(tmp_path: Path, cwd: Path) -> None:
    lines = [
        f"{S},{D},m{S:g}-{longest:g},{math.log(S) / math.log(D * longest)!r},them,c4"
        for S in (1e6, 1e7, 1e8)
        for longest in (1e9, 1e10)
        for D in (longest / 4, longest / 2, longest)
    ]
    file = tmp_path / "runs.csv"
    file.write_text("\n".join(["S,D,model,loss_nats,family,dataset", *lines]) + "\n")
    here("import", file, "source=them", "--store", tmp_path / "store", cwd=cwd, check=0)
    words = ("laws=[cross_entropy]", "resamples=1")
    (every,) = rows(tmp_path / "store", cwd, "surface", *words)
    (last,) = rows(tmp_path / "store", cwd, "surface", *words, "last=2")
    assert (every["n_points"], last["n_points"], last["n_runs"]) == (18, 6, 6)
    expected = {
        (S, longest): (math.log(S) / math.log(longest**2) + math.log(S) / math.log(longest**2 / 2)) / 2
        for S in (1e6, 1e7, 1e8)
        for longest in (1e9, 1e10)
    }
    points = zip(*(last["params"][name] for name in ("S", "D", "y")), strict=True)
    assert {(S, D): y for S, D, y in points} == pytest.approx(expected, rel=1e-12)
    shown = ask(tmp_path / "store", cwd, "surface", *words, "last=2").stdout
    assert "A point is the mean of the last 2 checkpoints of a training, or fewer." in " ".join(shown.split())


def test_a_surface_is_fitted_again_from_what_it_carries(drawn: Path, cwd: Path, found: list[dict[str, Any]]) -> None:
    for row in found[:2]:
        shown = json.loads(ask(drawn, cwd, "show", row["fit_id"]).stdout)["reproduced"]
        assert shown["objective"] == pytest.approx(row["objective"], rel=1e-9)
        assert shown["largest_relative_difference"] < 1e-5
        assert shown.keys() - {"objective", "largest_relative_difference"} == row["params"]["constants"].keys()


def test_a_quantity_that_is_not_known_has_a_row_without_numbers(tmp_path: Path, cwd: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(
        "S,D,loss_nats\n"
        + "".join(f"{S},{100 * S + D},{9 / S}\n" for S in (10**5, 2 * 10**5, 4 * 10**5) for D in (1, 7))
    )
    here("import", file, "source=them", "family=f", "dataset=c4", "--store", tmp_path / "s", cwd=cwd, check=0)
    found = rows(tmp_path / "s", cwd, "surface", "laws=[cross_entropy,bits_per_byte]", "resamples=1")
    unknown = next(row for row in found if row["law"] == "bits_per_byte")
    assert (unknown["objective"], unknown["alpha"]) == (None, None)
    assert "not_known" in unknown["reasons"]


def test_variants_are_surfaces_of_their_own(tmp_path: Path, cwd: Path) -> None:
    for variant in ("one", "two"):
        write_surface(tmp_path / "store", TRUTH, 1, variant=variant, n_documents=5, n_tokens=40)
    found = rows(tmp_path / "store", cwd, "surface", "laws=[cross_entropy]", "resamples=1")
    assert [(row["params"]["variant"], row["n_points"]) for row in found] == [("one", 20), ("two", 20)]
    assert found[0]["fit_id"] != found[1]["fit_id"]


BUDGETS = [1e18 * 10 ** (each / 2) for each in range(7)]
BEST = {C: 1e8 * (C / 1e19) ** 0.3 for C in BUDGETS}


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven budgets of FLOPs as a source states them: C / (6 S D) is .926 for the smallest size, more for others."""
    sizes = np.geomspace(1e7, 1e9, 6)
    points = [
        (S, round(C / (6 * S) / (0.926 + 0.03 * n)), C, math.exp(1 - 0.05 * math.log(C) + 0.02 * off**2))
        for C in BUDGETS
        for n, S in enumerate(sizes)
        for off in [math.log(S / BEST[C])]
    ]
    folder = tmp_path_factory.mktemp("stated")
    file = written(folder / "runs.csv", ["S", "D", "training_flops", "loss_nats"], points)
    here(
        "import",
        file,
        "source=t",
        "family=f",
        "dataset=t",
        "--store",
        folder / "store",
        cwd=folder,
        check=0,
        writes=True,
    )
    return folder / "store"


def test_isoflop_takes_every_budget_and_the_flops_that_are_stated(stated: Path, cwd: Path) -> None:
    (row,) = rows(stated, cwd, "surface", "resamples=20")
    found = {each["C"]: each for each in row["params"]["isoflop"]["budgets"]}
    assert list(found) == pytest.approx(BUDGETS)
    assert [each["S"] for each in found.values()] == pytest.approx(list(BEST.values()))
    assert {(each["n_sizes"], each["n_interpolated"]) for each in found.values()} == {(6, 0)}
    for each in found.values():
        place = np.log(each["S"] / 1e7) / np.log(100) * 5  # between the sizes, whose FLOPs a token are known
        assert each["C"] / (6 * each["S"] * each["D"]) == pytest.approx(0.926 + 0.03 * place, rel=2e-3)
    assert row["params"]["isoflop"]["chosen"] == "lined_up"
    assert "The best of a budget, C as stated" in " ".join(ask(stated, cwd, "surface", "resamples=20").stdout.split())


def test_no_best_of_a_budget_comes_from_a_form_that_is_not_identified(stated: Path, cwd: Path) -> None:
    words = ("form=all", "resamples=20", "budgets=[1e19,1e22]")
    found = {row["form"]: row for row in rows(stated, cwd, "surface", *words)}
    assert "not_identified" in found["data_constrained"]["reasons"]
    for name, row in found.items():
        for by in ("optima", "optima_as_stated"):
            assert all((best["S"] is None) == (name == "data_constrained") for best in row["params"][by]), (name, by)
    shown = ask(stated, cwd, "surface", *words).stdout
    best_of_a_budget = shown[shown.index("The best of a budget") :]
    assert "the best size grows as C^a, a by chinchilla" in best_of_a_budget


# ------------------------------------------------------------------------------------------------------- published


def reference(name: str) -> Path:
    path = REFERENCE / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    return path


def test_the_published_surface_of_chinchilla_comes_out_of_two_commands(tmp_path: Path, cwd: Path) -> None:
    with reference("chinchilla_points.csv").open(newline="") as lines:
        points = sorted(csv.DictReader(lines), key=lambda row: float(row["loss_nats"]))
    file = written(tmp_path / "points.csv", list(points[0]), [list(row.values()) for row in points[:-5]])
    store, columns = tmp_path / "store", "columns={S: params}"
    here("import", file, "source=figure", "family=c", "dataset=t", columns, "--store", store, cwd=cwd, check=0)
    (row,) = rows(store, cwd, "surface", "resamples=30")
    assert row["objective"] == pytest.approx(0.00101827402, rel=1e-5)
    assert [row[name] for name in ("alpha", "beta", "E")] == pytest.approx([0.34731, 0.36717, 1.81722], abs=2e-3)
    assert row["n_points"] == 240
    # the exponents of the best S and D are beta / (alpha + beta) and alpha / (alpha + beta)
    assert row["a"] + row["b"] == pytest.approx(1)
    assert row["a"] == pytest.approx(0.36717 / (0.36717 + 0.34731), abs=2e-3)
