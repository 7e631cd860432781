"""The store: whole runs, relations that equal counting by hand, identity, and views that are never out of date."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import (
    FAMILY,
    Family,
    Measured,
    assert_same_tokens,
    cell_records,
    columns_of,
    manifests,
    run_folders,
    snapshot,
)


@pytest.fixture(scope="module")
def ask(measured: Measured) -> Iterator[Any]:
    """`ask(SELECT)`: rows of an answer as dictionaries, as the verb `sql` gets them."""
    with connect(Store(measured.store)) as connection:
        yield lambda query: ask_user(connection, query).to_pylist()


def test_runs_say_what_was_measured_with_what(measured: Measured, ask: Any) -> None:
    for row in ask("SELECT * FROM runs"):
        assert (row["family"], row["dataset"], row["protocol"], row["dtype"]) == (FAMILY, "file", "paper", "float32")
        assert row["model"] == str(measured.family.folders[row["size"]])
        assert row["vocab_size"] == 320
        assert row["n_documents"] + row["n_skipped"] == 8
        assert row["wall_s"] > 0
        assert row["tokens_per_s"] == pytest.approx(row["n_tokens"] / row["wall_s"], rel=1e-6)
        assert json.loads(row["config"])["limit"] == 1000
        assert {"torch", "transformers", "rbpx"} <= set(json.loads(row["versions"]))
        assert row["started_at"].year >= 2026


def test_sizes_are_counted_from_the_tensors(measured: Measured, ask: Any) -> None:
    from safetensors.numpy import load_file

    for row in ask("SELECT size, non_embedding_params, total_params FROM runs"):
        tensors = load_file(measured.family.folders[row["size"]] / "model.safetensors")
        counts = {name: tensor.size for name, tensor in tensors.items() if name != "lm_head.weight"}  # tied
        embeddings = sum(counts[f"transformer.{name}.weight"] for name in ("wte", "wpe"))
        assert row["total_params"] == sum(counts.values())
        assert row["non_embedding_params"] == sum(counts.values()) - embeddings


# --------------------------------------------------------------------------------------------- against counting by hand


def test_rank_counts_and_the_facts_of_a_run_equal_counting_its_tokens(measured: Measured) -> None:
    for run_id, folder in run_folders(measured.store).items():
        tokens, counts, facts = (
            columns_of(folder, "tokens"),
            columns_of(folder, "rank_counts"),
            manifests(measured.store),
        )
        logprobs = defaultdict(list)
        for greater, ties, logprob in zip(tokens["greater"], tokens["ties"], tokens["logprob"], strict=True):
            logprobs[int(greater), int(ties)].append(float(logprob))
        found = list(zip(counts["greater"].tolist(), counts["ties"].tolist(), strict=True))
        assert sorted(found) == sorted(logprobs)
        for pair, n_tokens, total in zip(found, counts["n_tokens"], counts["sum_logprob"], strict=True):
            assert n_tokens == len(logprobs[pair])
            assert total == pytest.approx(sum(logprobs[pair]), rel=1e-12)
        assert facts[run_id]["n_tokens"] == len(tokens["logprob"])
        assert facts[run_id]["cross_entropy_nats"] == pytest.approx(
            -np.mean(tokens["logprob"].astype(np.float64)), rel=1e-12
        )
        assert (tokens["run_id"] == run_id).all()


def test_documents_count_the_tokens_that_were_read_and_scored(measured: Measured) -> None:
    from transformers import AutoTokenizer

    texts = [json.loads(line)["text"] for line in measured.family.text.read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(measured.family.folders["xs"])
    for folder in run_folders(measured.store).values():
        tokens, documents = columns_of(folder, "tokens"), columns_of(folder, "documents")
        assert documents["doc_id"].tolist() == list(range(8))
        assert sorted(documents["source_id"]) == sorted(str(row) for row in range(1, 9))
        for doc_id, source_id in enumerate(documents["source_id"]):
            ids = tokenizer(texts[int(source_id) - 1])["input_ids"]
            positions = tokens["position"][tokens["doc_id"] == doc_id]
            assert documents["n_tokens"][doc_id] == min(len(ids), 64)  # the tiny models' context
            assert documents["n_scored"][doc_id] == len(positions)
            assert tokens["token_id"][tokens["doc_id"] == doc_id].tolist() == [ids[at] for at in positions]
            if len(ids) <= 64:
                assert documents["n_bytes"][doc_id] == len(texts[int(source_id) - 1].encode())


def test_vocab_gives_the_text_of_every_id(measured: Measured, ask: Any) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(measured.family.folders["xs"])
    rows = ask("SELECT token_id, text FROM vocab ORDER BY token_id")
    assert [row["token_id"] for row in rows] == list(range(len(tokenizer)))
    assert [row["text"] for row in rows] == [tokenizer.decode([n]) for n in range(len(tokenizer))]


# ------------------------------------------------------------------------------------------------------------ identity


def test_batch_size_device_and_working_directory_do_not_change_identity_or_results(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    one = measured.family.folders["s"]
    words = ["measure", "model=hub", f"model.id={os.path.relpath(one, cwd)}", f"model.family={FAMILY}", "dataset=file"]
    words += [f"dataset.path={os.path.relpath(measured.family.text, cwd)}", "tokens_per_batch=70", "device=cpu"]
    here(*words, "--store", "../store", cwd=cwd, check=0)
    (record,) = cell_records(tmp_path / "store")
    (expected,) = [record for record in cell_records(measured.store) if record["size"] == "s"]
    assert record["cell_key"] == expected["cell_key"]
    assert record["run_id"] == expected["run_id"]
    assert_same_tokens(tmp_path / "store" / "runs" / record["run_id"], measured.store / "runs" / record["run_id"])


@pytest.mark.parametrize(
    "change", ["dtype=bfloat16", "limit=7", "seed=43", "protocol.window=32"], ids=lambda change: change.split("=")[0]
)
def test_what_changes_results_makes_another_run(change: str, own_store: Path, family: Family, cwd: Path) -> None:
    before = set(run_folders(own_store))
    here("measure", *family.words("xs"), change, "--store", own_store, cwd=cwd, check=0)
    added = set(run_folders(own_store)) - before
    assert len(added) == 1
    assert len(cell_records(own_store)) == 5


@pytest.mark.parametrize("verb", ["run", "measure"])
def test_measuring_again_measures_nothing(verb: str, own_store: Path, family: Family, cwd: Path) -> None:
    here("fit", "--store", own_store, "resamples=50", cwd=cwd, check=0)
    here("status", "--store", own_store, cwd=cwd, check=0)  # views of the copy's place
    before = snapshot(own_store)
    few = ("resamples=50",) if verb == "run" else ()
    answer = here(verb, *family.words(), "--store", own_store, *few, cwd=cwd, check=0)
    after = snapshot(own_store)
    assert "tokens/s" not in answer.stderr
    evidence = ("runs/", "cells/", "vocab/")
    assert {n: v for n, v in before.items() if n.startswith(evidence)} == {
        n: v for n, v in after.items() if n.startswith(evidence)
    }
    assert set(before) == set(after)
    if verb == "measure":
        assert before == after
        told = f"nothing to measure: all 4 cells asked for are in store={own_store} already, mine on file"
        assert answer.stderr == f"rbpx: {told}\n"


def test_a_sweep_with_nothing_to_measure_is_one_line_and_one_with_a_missing_cell_is_not(
    own_store: Path, family: Family, cwd: Path
) -> None:
    words = ["measure", *family.words("xs"), "--store", own_store]
    answer = here(*words, "-m", "seed=42", "limit=1000", cwd=cwd, check=0)
    told = f"rbpx: nothing to measure: the cell asked for is in store={own_store} already, mine on file\n"
    assert answer.stderr == told
    assert "nothing to measure" not in here(*words, "-m", "seed=42,7", cwd=cwd, check=0).stderr


def test_a_model_under_another_family_name_is_another_row_of_the_same_run(
    own_store: Path, family: Family, cwd: Path
) -> None:
    before = {name: value for name, value in snapshot(own_store).items() if name.startswith("runs/")}
    here("measure", *family.words("m", name="other"), "--store", own_store, cwd=cwd, check=0)
    assert {name: value for name, value in snapshot(own_store).items() if name.startswith("runs/")} == before
    query = "SELECT family, run_id FROM runs WHERE size = 'm' ORDER BY family"
    answer = here("sql", query, "--store", own_store, "--format", "json", cwd=cwd, check=0)
    rows = json.loads(answer.stdout)
    assert [row["family"] for row in rows] == ["mine", "other"]
    assert rows[0]["run_id"] == rows[1]["run_id"]


# ---------------------------------------------------------------------------------------------------------- rbpx.duckdb


def index_of(store: Path, query: str) -> list[Any]:
    """What any DuckDB client answers from rbpx.duckdb."""
    with duckdb.connect(str(store / "rbpx.duckdb"), read_only=True) as index:
        return index.execute(query).fetchall()


def n_rows(store: Path) -> int:
    return sum(len(columns_of(folder, "tokens")["position"]) for folder in run_folders(store).values())


@pytest.mark.parametrize("harm", ["deleted", "emptied", "cut short", "overwritten", "of another database"])
def test_views_that_were_harmed_are_made_again(harm: str, own_store: Path, cwd: Path) -> None:
    views = own_store / "rbpx.duckdb"
    whole = views.read_bytes()
    views.unlink()
    if harm == "of another database":
        with duckdb.connect(str(views)) as other:
            other.execute("CREATE TABLE runs AS SELECT 1 AS one")
    elif harm != "deleted":
        views.write_bytes({"emptied": b"", "cut short": whole[: len(whole) // 3]}.get(harm, b"no database " * 999))
    here("status", "--store", own_store, cwd=cwd, check=0)
    assert index_of(own_store, "SELECT count(*) FROM tokens") == [(n_rows(own_store),)]
    assert index_of(own_store, "SELECT count(*) FROM fits WHERE law = 'cross_entropy'") == [(1,)]
