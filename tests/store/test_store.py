"""The store: whole runs, and relations that equal counting by hand."""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from transformers import AutoTokenizer

from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import (
    FAMILY,
    SHAPES,
    Measured,
    assert_same_tokens,
    cell_records,
    columns_of,
    manifests,
    rank_by_hand,
    run_folders,
    runs_by_size,
    snapshot,
)

_, *LINES = Path(__file__).with_name("promised.txt").read_text(encoding="utf-8").splitlines()[1:]
PROMISED = dict(line.split(": ") for line in LINES)
RULES = ("pessimistic", "optimistic", "mid")


@pytest.fixture(scope="module")
def ask(drawn: Path) -> Iterator[Any]:
    """`ask(SELECT)`: rows of an answer as dictionaries, as the verb `sql` gets them."""
    with connect(Store(drawn)) as connection:
        yield lambda query: ask_user(connection, query).to_pylist()


# --------------------------------------------------------------------------------------------------------- whole runs


def test_a_run_is_a_manifest_and_three_parquet_files_that_the_manifest_vouches_for(drawn: Path) -> None:
    runs = run_folders(drawn)
    assert len(runs) == len(SHAPES)
    for run_id, folder in runs.items():
        facts = json.loads((folder / "manifest.json").read_text())
        names = {"tokens.parquet", "rank_counts.parquet", "documents.parquet"}
        assert {path.name for path in folder.iterdir()} == names | {"manifest.json"}
        assert facts["run_id"] == run_id
        assert facts["files"] == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    assert not list(drawn.glob("runs/.*"))


@pytest.mark.parametrize("relation", PROMISED)
def test_a_relation_has_the_promised_columns(relation: str, ask: Any) -> None:
    columns = ask(f"SELECT column_name FROM (DESCRIBE {relation})")
    assert set(PROMISED[relation].split(", ")) <= {row["column_name"] for row in columns}


def test_shares_equal_counting_by_hand_under_each_rule_at_the_usual_k_and_at_any(drawn: Path, ask: Any) -> None:
    told, names = {}, "size, k, ties, rbp, n, source, n_tokens"
    for ties in RULES:
        ranks = {size: rank_by_hand(run, ties) for size, run in runs_by_size(drawn).items()}
        rows = ask(f"SELECT {names} FROM observations WHERE ties = '{ties}' ORDER BY k")
        assert [row["k"] for row in rows] == [1] * 4 + [10] * 4 + [100] * 4
        for k in (1, 2, 3, 42, 319, 320):
            rows += ask(f"SELECT {names} FROM rbp_at(k := {k}, ties := '{ties}')")
            assert sorted(row["size"] for row in rows[-4:]) == sorted(SHAPES)
            assert {row["k"] for row in rows[-4:]} == {k}
        for row in rows:
            rank = ranks[row["size"]]
            assert row["rbp"] == pytest.approx(np.count_nonzero(rank <= row["k"]) / len(rank), rel=1e-15)
            assert [row[name] for name in ("ties", "n", "source", "n_tokens")] == [ties, 1, "measured", len(rank)]
        told[ties] = sum(row["rbp"] for row in rows)
    assert told["pessimistic"] < told["mid"] < told["optimistic"], "the rules differ on these models"


def test_a_removed_run_takes_its_fits_and_its_rows_with_it(own_store: Path, cwd: Path) -> None:
    (record,) = [record for record in cell_records(own_store) if record["size"] == "l"]
    assert list((own_store / "fits").glob("*.json"))
    here("store", "rm", record["run_id"], "--store", own_store, cwd=cwd, check=0)
    assert record["run_id"] not in run_folders(own_store)
    assert not list((own_store / "fits").glob("*.json"))  # each of them was of all four sizes
    with connect(Store(own_store)) as connection:
        assert ask_user(connection, "SELECT size FROM runs ORDER BY size")["size"].to_pylist() == ["m", "s", "xs"]


# ---------------------------------------------------------------------------------------------------- what was measured


def test_runs_say_what_was_measured_with_what_and_count_its_tokens_by_rank(measured: Measured) -> None:
    with connect(Store(measured.store)) as connection:
        rows = ask_user(connection, "SELECT * FROM runs").to_pylist()
    assert len(rows) == len(SHAPES)
    for row in rows:
        folder, facts = measured.family.folders[row["size"]], manifests(measured.store)[row["run_id"]]
        assert (row["family"], row["dataset"], row["protocol"], row["dtype"]) == (FAMILY, "file", "paper", "float32")
        assert (row["model"], row["vocab_size"], row["n_documents"] + row["n_skipped"]) == (str(folder), 320, 8)
        assert row["tokens_per_s"] == pytest.approx(row["n_tokens"] / row["wall_s"], rel=1e-6)
        assert json.loads(row["config"])["limit"] == 1000
        assert {"torch", "transformers", "rbpx"} <= set(json.loads(row["versions"]))
        tensors = load_file(folder / "model.safetensors")
        n_params = {name: tensor.size for name, tensor in tensors.items() if name != "lm_head.weight"}  # tied
        embeddings = sum(n_params[f"transformer.{name}.weight"] for name in ("wte", "wpe"))
        assert row["total_params"] == sum(n_params.values()) == row["non_embedding_params"] + embeddings
        tokens, counts = (
            columns_of(measured.store / "runs" / row["run_id"], kind) for kind in ("tokens", "rank_counts")
        )
        logprobs = defaultdict(list)
        for greater, ties, logprob in zip(tokens["greater"], tokens["ties"], tokens["logprob"], strict=True):
            logprobs[int(greater), int(ties)].append(float(logprob))
        found = zip(*(counts[name].tolist() for name in ("greater", "ties", "n_tokens", "sum_logprob")), strict=True)
        expected = {(*pair, len(each)): pytest.approx(sum(each), rel=1e-12) for pair, each in logprobs.items()}
        assert {tuple(count): total for *count, total in found} == expected
        assert (facts["n_tokens"], row["n_tokens"]) == (len(tokens["logprob"]),) * 2
        assert facts["cross_entropy_nats"] == pytest.approx(-np.mean(tokens["logprob"].astype(float)), rel=1e-12)


def test_documents_count_the_tokens_that_were_read_and_scored_and_vocab_has_their_texts(measured: Measured) -> None:
    texts = [json.loads(line)["text"] for line in measured.family.text.read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(measured.family.folders["xs"])
    for folder in run_folders(measured.store).values():
        tokens, documents = columns_of(folder, "tokens"), columns_of(folder, "documents")
        assert documents["doc_id"].tolist() == list(range(8))
        assert sorted(documents["source_id"]) == [str(row) for row in range(1, 9)]
        for doc_id, source_id in enumerate(documents["source_id"]):
            text = texts[int(source_id) - 1]
            ids, mine = tokenizer(text)["input_ids"], tokens["doc_id"] == doc_id
            assert documents["n_tokens"][doc_id] == min(len(ids), 64)  # the tiny models' context
            assert documents["n_scored"][doc_id] == mine.sum()
            assert tokens["token_id"][mine].tolist() == [ids[at] for at in tokens["position"][mine]]
            assert len(ids) > 64 or documents["n_bytes"][doc_id] == len(text.encode())
    with connect(Store(measured.store)) as connection:
        vocab = ask_user(connection, "SELECT text FROM vocab ORDER BY token_id")["text"].to_pylist()
    assert vocab == [tokenizer.decode([n]) for n in range(len(tokenizer))]


def test_the_same_request_from_elsewhere_in_other_batches_is_the_same_run_and_under_another_name_a_row_more(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    folder, text = (os.path.relpath(path, cwd) for path in (measured.family.folders["s"], measured.family.text))
    words = ["measure", "model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={text}"]
    words += ["tokens_per_batch=70", "device=cpu", "--store", str(tmp_path / "store")]
    here(*words, f"model.family={FAMILY}", cwd=cwd, check=0)
    (record,) = cell_records(tmp_path / "store")
    (expected,) = [record for record in cell_records(measured.store) if record["size"] == "s"]
    assert (record["cell_key"], record["run_id"]) == (expected["cell_key"], expected["run_id"])
    ours, theirs = (store / "runs" / record["run_id"] for store in (tmp_path / "store", measured.store))
    assert_same_tokens(ours, theirs)
    again = here(*words, f"model.family={FAMILY}", cwd=cwd, check=0).stderr
    assert (
        again
        == f"rbpx: nothing to measure: the cell asked for is in store={tmp_path / 'store'} already, mine on file\n"
    )
    before = snapshot(ours)
    here(*words, "model.family=other", cwd=cwd, check=0)
    assert snapshot(ours) == before
    told = {(cell["family"], cell["run_id"]) for cell in cell_records(tmp_path / "store")}
    assert told == {(FAMILY, record["run_id"]), ("other", record["run_id"])}
