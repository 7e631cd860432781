"""A run has its own name and the size S; earlier imports keep their sizes and ids; a variant can be picked."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here, rows_of
from tests.support.imports import found, imported
from tests.support.stores import snapshot

ONCE = "{{column: {}, times: 1}}".format  # so few that an import asks what they count
COLUMNS = f"columns={{S: {ONCE('params')}, D: {ONCE('tokens')}, loss_nats: loss, model: run_name}}"
VARIANT = f"{COLUMNS[:-1]}, variant: optimizer}}"
TOKENS = (1e9, 3e9, 9e9, 27e9)


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    return imports.bring(file, store, cwd, "source=me", "family=lab", "dataset=c4", *words, check=check)


def asked(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    return rows_of(*words, *([] if words[0] == "status" else ["--details"]), "--store", store, cwd=cwd)


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
def test_the_size_of_a_named_run_is_S_and_its_name_the_model(name: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(trainings(tmp_path / "runs.csv", name=name), store, cwd, VARIANT)
    laws = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy")
    sizes = [(law["size"], law["n_points"], law["alpha"]) for law in laws]
    assert sizes == [(size, 4, pytest.approx(0.06, rel=1e-9)) for size in ("60000000", "240000000")] * 2
    one = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy", 'size="240000000"', "variant=muon")
    assert [law["fit_id"] for law in one] == [laws[3]["fit_id"]]
    for row in imported(store, "size", "model", "non_embedding_params"):
        assert row["size"] == f"{row['non_embedding_params']:.0f}"
        assert row["size"] in row["model"]


def test_a_variant_that_is_not_there_is_refused_with_those_that_are(store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(trainings(tmp_path / "runs.csv", name=NAMES["its checkpoints"]), store, cwd, VARIANT)
    (line,) = here("fit", "variant=moun", "--store", store, cwd=cwd, check=2).stderr.splitlines()
    assert "variant=moun is not in the store; did you mean muon? it holds adamw, muon" in line
    (line,) = here("fit", "variant=2", "--store", store, cwd=cwd, check=2).stderr.splitlines()
    assert "variant=2 is not in the store" in line


def test_trainings_of_one_size_have_a_law_each_along_their_checkpoints_and_one_through_their_ends(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    """Checkpoints of three schedules at one size share tokens; their ends are the points of one law in D."""
    ends = {"short": 4_000, "middle": 8_000, "long": 16_000}
    rows = ["run_name,params,tokens,loss"]
    for run, end in ends.items():
        rows += [f"{run},1000,{D},{5 * D**-0.2 + (D < end) / 10!r}" for D in range(1_000, end + 1, 1_000)]
    (tmp_path / "runs.csv").write_text("\n".join(rows) + "\n")
    bring(tmp_path / "runs.csv", store, cwd, COLUMNS)
    each = asked(store, cwd, "fit", "axis=D", "laws=cross_entropy")
    assert {law["model"]: law["n_points"] for law in each} == {"short": 4, "middle": 8, "long": 16}
    assert {law["size"] for law in each} == {"1000"}
    assert len({law["fit_id"] for law in each}) == 3
    (last,) = asked(store, cwd, "fit", "axis=D", "checkpoints=last", "laws=cross_entropy")
    assert (last["size"], last["n_points"], last["params"]["S"]) == ("1000", 3, list(ends.values()))
    assert last["alpha"] == pytest.approx(0.2, rel=1e-9)
    refused = here("predict", "S=2000", "--store", store, cwd=cwd, check=2).stderr
    assert "models of one size were trained on different numbers of tokens" in refused


def test_two_runs_of_one_size_that_nothing_tells_apart_are_named(store: Path, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("model,S,loss_nats\na,10M,3\nb,10M,2.9\nc,20M,2\nd,30M,1\n")
    bring(tmp_path / "runs.csv", store, cwd, "revision=x")
    (line,) = here("fit", "--store", store, cwd=cwd, check=2).stderr.splitlines()
    assert "two models with S = 10,000,000 on c4, a and b;" in line


# ------------------------------------------------------------------------------------------ imports of earlier versions

OLD = Path(__file__).parent / "imports" / "them-47f5f6d62f510108.parquet"
HELD = "size, model, non_embedding_params, training_tokens, cross_entropy_nats, run_id"
BEFORE = [  # its rows, which version 0.2 made of LONG without its last line, and the ids that it gave them
    ("120000000", None, 1.2e8, 1000, 3.7, "8ce9591a3b41866d"),
    ("adamw-60m", "lab/adamw-60m", 6e7, 1000, 4.1, "42ffdee1d6e306c0"),
    ("adamw-60m", "lab/adamw-60m", 6e7, 2000, 3.9, "dfc4f0c97b1b0deb"),
    ("muon-60m", "lab/muon-60m", 6e7, 1500, 3.8, "fcf5db31dfe92542"),
]
LONG = [
    "run_name,params,tokens,loss",
    *("lab/adamw-60m,60000000,1000,4.1", "lab/adamw-60m,60000000,2000,3.9", "lab/muon-60m,60000000,1500,3.8"),
    *(",120000000,1000,3.7", "lab/adamw-60m,60000000,4000,3.7"),
]


@pytest.fixture
def old_store(store: Path) -> Path:
    """A store with one import of version 0.2, whose sizes are the names of its runs."""
    (store / "imports").mkdir(parents=True)
    shutil.copy(OLD, store / "imports")
    return store


def test_what_an_earlier_version_imported_is_read_as_it_was(old_store: Path, cwd: Path) -> None:
    before = snapshot(old_store / "imports")
    assert found(old_store, HELD) == BEFORE
    (shown,) = [asked(old_store, cwd, "status")]
    assert [(row["file"], row["sha256"], row["n_observations"]) for row in shown] == [("runs.csv", "ee97", 4)]
    assert snapshot(old_store / "imports") == before


def test_the_same_file_brings_nothing_new_to_it_and_a_longer_one_what_is_longer(
    old_store: Path, cwd: Path, tmp_path: Path
) -> None:
    file, told = tmp_path / "runs.csv", ("source=them", "family=lab", "dataset=c4", COLUMNS)
    file.write_text("\n".join(LONG[:-1]) + "\n")
    assert "nothing new" in imports.bring(file, old_store, cwd, *told).stderr
    assert found(old_store, HELD) == BEFORE
    file.write_text("\n".join(LONG) + "\n")
    assert "(4 of them were there already)" in imports.bring(file, old_store, cwd, *told).stderr
    (new,) = [row for row in found(old_store, HELD) if row not in BEFORE]
    assert new[:5] == ("adamw-60m", "lab/adamw-60m", 6e7, 4000, 3.7)
    laws = asked(old_store, cwd, "fit", "axis=D", "laws=cross_entropy")
    assert [(law["size"], law["n_points"]) for law in laws] == [("adamw-60m", 3)]
