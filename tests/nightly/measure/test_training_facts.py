"""How models were trained, in the store: from files, keys and checkpoints' names; seeds of one size are replicates."""

import json
from pathlib import Path
from typing import Any

from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.stores import RESAMPLES, Family, build_member, cell_records, run_folders

FACTS = ("training_tokens", "training_flops", "training_step", "unique_tokens", "training_seed", "variant")


def rows(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def with_twins(family: Family, folder: Path) -> Family:
    """The family with a second training of two of its sizes."""
    twins = {f"{size}2": build_member(folder / f"{size}2", size, seed) for seed, size in enumerate(("s", "m"), 20)}
    return Family(dict(family.folders) | twins, family.text)


def test_facts_of_models_measured_before_come_in_without_measuring_and_seeds_are_replicates(
    own_store: Path, family: Family, tmp_path: Path, cwd: Path
) -> None:
    store = ["--store", own_store]
    for record in cell_records(own_store):  # as an earlier version wrote them
        plain = {name: value for name, value in record.items() if name not in (*FACTS, "seal")}
        Store(own_store).write_record("cells", record["cell_key"], plain)
    listed = ["sql", f"SELECT size, {', '.join(FACTS)} FROM runs ORDER BY size", "--format", "json", *store]
    before = rows(here(*listed, cwd=cwd, check=0))
    assert before == [{"size": size, **dict.fromkeys(FACTS)} for size in ("l", "m", "s", "xs")]
    ids = {record["cell_key"]: record["run_id"] for record in cell_records(own_store)}

    twins = with_twins(family, tmp_path)
    words = twins.words("xs", "s", "s2", "m", "m2", "l")
    here("measure", *words, *store, cwd=cwd, check=0)
    refused = here("fit", RESAMPLES, *store, cwd=cwd, check=2)
    (line,) = refused.stderr.splitlines()
    assert "two models with S = " in line
    assert "training_seed" in line

    runs = run_folders(own_store)
    here("measure", *words, "model.seed=[0,0,1,0,1,0]", "model.tokens=1e6", *store, cwd=cwd, check=0)
    assert run_folders(own_store) == runs
    assert ids.items() <= {record["cell_key"]: record["run_id"] for record in cell_records(own_store)}.items()
    seeds = {row["size"]: row["training_seed"] for row in rows(here(*listed, cwd=cwd, check=0))}
    assert seeds == {"l": 0, "m": 0, "m2": 1, "s": 0, "s2": 1, "xs": 0}
    query = "SELECT DISTINCT training_tokens FROM observations"
    assert rows(here("sql", query, "--format", "json", *store, cwd=cwd, check=0)) == [{"training_tokens": 1_000_000}]
    # What is not said again stays known.
    here("measure", *words, *store, cwd=cwd, check=0)
    assert {row["size"]: row["training_seed"] for row in rows(here(*listed, cwd=cwd, check=0))} == seeds

    fits = rows(here("fit", RESAMPLES, "--format", "json", "--details", *store, cwd=cwd, check=0))
    entropy = next(row for row in fits if row["law"] == "cross_entropy")
    assert entropy["n_points"] == 6
    assert entropy["params"]["replicates"]["dof_rest"] == 2
    predicted = rows(here("predict", RESAMPLES, "--format", "json", "--details", *store, cwd=cwd, check=0))
    assert {row["n_fitted"] for row in predicted if row["kind"] == "backtest"} == {5}
    for verb in ("emergence", "klaw", "ranks", "entropy", "learning", "regimes"):
        answer = here(verb, RESAMPLES, "--format", "json", *store, cwd=cwd, check=0)
        assert rows(answer), verb
