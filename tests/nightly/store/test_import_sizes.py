"""A run has its own name and the size S; earlier imports keep their sizes and ids; a variant can be picked."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.places import SHARED

COLUMNS = "columns={S: params, D: tokens, loss_nats: loss, model: run_name}"
VARIANT = f"{COLUMNS[:-1]}, variant: optimizer}}"
TOKENS = (1e9, 3e9, 9e9, 27e9)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    return imports.bring(file, store, cwd, "source=me", "family=lab", "dataset=c4", *words, check=check)


def asked(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    words = words if words[0] in ("sql", "status") else (*words, "--details")
    rows: list[dict[str, Any]] = json.loads(here(*words, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    return rows


def trainings(path: Path, *, name: str) -> Path:
    """Two optimizers at two sizes; the second needs half of the tokens. Each row names its run as `name` has it."""
    rows = ["run_name,optimizer,params,tokens,loss"]
    for optimizer, worth in (("adamw", 1), ("muon", 2)):
        for S in (60_000_000, 240_000_000):
            for at, D in enumerate(TOKENS):
                run = name.format(optimizer=optimizer, S=S, at=at)
                rows.append(f"{run},{optimizer},{S},{D:.0f},{20 * S**-0.05 * (worth * D) ** -0.06!r}")
    path.write_text("\n".join(rows) + "\n")
    return path


NAMES = {"its checkpoints": "{optimizer}-{S}", "runs of their own": "{optimizer}-{S}-{at}"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_tokens_of_two_variants_are_compared_at_each_size_whatever_runs_are_called(
    name: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(trainings(tmp_path / "runs.csv", name=name), store, cwd, VARIANT)
    rows = asked(store, cwd, "multiplier", "base=lab:adamw", "variant=lab:muon", "axis=D", "laws=cross_entropy")
    overall = {
        row["fixed_size"]: row["multiplier"] for row in rows if row["kind"] == "overall" and row["offset"] == "none"
    }
    assert overall == pytest.approx({"60000000": 2, "240000000": 2}, rel=1e-6)
    laws = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy")
    sizes = [(law["size"], law["n_points"], law["params"]["sizes"]) for law in laws]
    assert sizes == [(size, 4, [size] * 4) for size in ("60000000", "240000000")] * 2
    assert [law["alpha"] for law in laws] == pytest.approx([0.06] * 4, rel=1e-9)
    one = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy", 'size="240000000"', "variant=muon")
    assert [law["fit_id"] for law in one] == [laws[3]["fit_id"]]


def test_a_variant_narrows_a_surface_and_whatever_else_is_asked(store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(trainings(tmp_path / "runs.csv", name=NAMES["its checkpoints"]), store, cwd, VARIANT)
    words = ("laws=cross_entropy", "resamples=1")
    both = {row["params"]["variant"]: row["fit_id"] for row in asked(store, cwd, "surface", *words)}
    assert both.keys() == {"adamw", "muon"}
    for variant, fit_id in both.items():
        (row,) = asked(store, cwd, "surface", f"variant={variant}", *words)
        assert (row["params"]["variant"], row["fit_id"], row["n_points"]) == (variant, fit_id, 8)
    listed = asked(store, cwd, "surface", "variant=[muon,adamw]", *words)
    swept = asked(store, cwd, "surface", "-m", "variant=muon,adamw", *words)
    assert {row["fit_id"] for row in listed} == {row["fit_id"] for row in swept} == set(both.values())
    for verb in (("fit", "axis=D"), ("trajectory",)):
        kinds = {row.get("variant", "muon") or "muon" for row in asked(store, cwd, *verb, "variant=muon", *words)}
        assert kinds == {"muon"}, verb


# ------------------------------------------------------------------------------------------------------ published runs


def test_published_checkpoints_of_named_runs_have_a_law_a_size(store: Path, cwd: Path) -> None:
    path = SHARED / "reference" / "gemstones_checkpoints.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the project")
    words = ("source=gemstones", "family=gemstones", "dataset=dolma", "columns={S: params, D: tokens, model: run}")
    here("import", path, *words, "--store", store, cwd=cwd, check=0)
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    laws = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy", "resamples=1")
    points = {
        S: np.log([(float(row["tokens"]), float(row["loss_nats"])) for row in rows if row["params"] == S]).T
        for S in {row["params"] for row in rows}
    }
    slopes = {S: -float(np.polyfit(*of, 1)[0]) for S, of in points.items()}
    assert {law["size"]: law["alpha"] for law in laws} == pytest.approx(slopes, rel=1e-6)
