"""Units across tokenizers by real commands, and how often their intervals hold the truth."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from rbpx.store.store import Store
from tests.support.checkpoints import build_checkpoint
from tests.support.commands import here
from tests.support.drawn_answers import of_units
from tests.support.stores import Family, Measured, reseal


def rows(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def test_bits_per_byte_are_one_select(measured: Measured, cwd: Path) -> None:
    query = "SELECT size, cross_entropy_nats * n_tokens / ln(2) / n_bytes_scored AS bits_per_byte FROM runs"
    of_sql = {row["size"]: row["bits_per_byte"] for row in rows(measured.store, cwd, "sql", query)}
    found = {row["size"]: row["bits_per_byte"] for row in rows(measured.store, cwd, "units", "resamples=50")}
    assert found == pytest.approx(of_sql)


def test_two_families_of_different_tokenizers_stand_side_by_side(
    own_store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    folder = build_checkpoint("opt", tmp_path / "opt", seed=3)
    words = ["model=hub", f"model.id={folder}", "model.family=other", *family.words("xs")[3:]]
    here("measure", *words, "--store", own_store, cwd=cwd, check=0)
    found = rows(own_store, cwd, "units", "resamples=50")
    of = {name: [row for row in found if row["family"] == name] for name in ("mine", "other")}
    assert (len(of["mine"]), len(of["other"])) == (4, 1)
    assert len({row["text_hash"] for row in found}) == 1
    # within a family one constant lies between the units, so that their laws have one alpha; another between families
    constants = [row["bits_per_byte"] / row["nats_per_token"] for row in of["mine"]]
    assert constants == pytest.approx([constants[0]] * 4, rel=1e-12)
    assert of["other"][0]["bits_per_byte"] / of["other"][0]["nats_per_token"] != pytest.approx(constants[0], rel=1e-3)
    printed = here("units", "resamples=50", "--store", own_store, cwd=cwd, check=0).stdout
    assert printed.count("Nats per token and bits per byte\n") == 1
    assert printed.index("mine") < printed.index("other")
    assert max(len(line) for line in printed.splitlines() if not re.match(r"[\w/]+: |Ties ", line)) <= 80


def test_the_index_holds_runs_that_know_their_bytes_beside_those_that_do_not(own_store: Path, cwd: Path) -> None:
    for run in Store(own_store).run_ids()[:2]:
        path = own_store / "runs" / run / "documents.parquet"
        pq.write_table(pq.read_table(path).drop_columns("n_bytes_scored"), path)
        reseal(path.parent)
    (own_store / "rbpx.duckdb").unlink()
    here("status", "--store", own_store, cwd=cwd, check=0)
    query = "SELECT count(DISTINCT run_id) FROM documents WHERE n_bytes_scored IS NOT NULL"
    with duckdb.connect(str(own_store / "rbpx.duckdb"), read_only=True) as index:
        assert index.execute(query).fetchone() == (2,)


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = of_units(200, 100_000)
    assert all(180 <= n <= 199 for n in held.values()), held
