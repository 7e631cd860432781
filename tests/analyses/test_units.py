"""Units across tokenizers: bytes, ratios and quantiles as a loop over tokens counts them, intervals as often right."""

import json
import math
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.analyses.units.analysis import express
from rbpx.data.corpus import Document
from rbpx.data.windows import cut_windows, token_bytes
from rbpx.laws.intervals.estimate import document_weights
from rbpx.store.store import Store
from tests.support.checkpoints import ARCHITECTURES, build_checkpoint, build_tokenizer
from tests.support.commands import here
from tests.support.stores import Family, Measured, columns_of, manifests, rank_by_hand, reseal, runs_by_size
from tests.support.synthetic import Truth, write_store

Rows = list[dict[str, Any]]
FAMILIES = [arch for arch in ARCHITECTURES if arch != "opt350"]


def rows(store: Path, cwd: Path, *words: str) -> Rows:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


# --------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.parametrize("arch", FAMILIES)
@pytest.mark.parametrize("window", [7, 64, 10_000])
def test_scored_bytes_are_those_that_the_scored_tokens_spell(arch: str, window: int, tiny_text: list[str]) -> None:
    """A byte-level token has a character for each of its bytes; no text here begins or is cut inside a letter."""
    tokenizer = build_tokenizer(arch)
    texts = [text for text in [*tiny_text, "  a  b \n\n" * 20, "x"] if "東" not in text or window > 64]
    windows = cut_windows([Document(i, str(i), text) for i, text in enumerate(texts)], tokenizer, window)
    assert sum(w.n_scored for w in windows) > 100 or window == 7
    for cut in windows:
        scored = tokenizer.convert_ids_to_tokens(cut.ids[cut.scored].tolist())
        assert cut.n_bytes_scored == sum(map(len, scored))
        assert cut.n_bytes_scored < cut.n_bytes or cut.n_bytes == 0


def test_a_letter_of_several_tokens_counts_with_the_first_of_them() -> None:
    assert token_bytes("東a", [(0, 1), (0, 1), (0, 1), (1, 2)]).tolist() == [3, 0, 0, 1]
    assert token_bytes("a東", [(0, 1), (1, 2), (1, 2), (1, 2)]).tolist() == [1, 3, 0, 0]


def test_blanks_that_a_tokenizer_trims_off_its_offsets_are_counted() -> None:
    assert token_bytes("a b", [(0, 1), (2, 3)]).tolist() == [1, 2]


def test_specials_and_what_follows_them_are_in_neither_count(measured: Measured) -> None:
    for run_id, facts in manifests(measured.store).items():
        documents = columns_of(measured.store / "runs" / run_id, "documents")
        assert facts["n_bytes_scored"] == documents["n_bytes_scored"].sum()
        assert facts["n_bytes_scored"] < facts["n_bytes"]
        assert (documents["n_bytes_scored"][documents["n_scored"] == 0] == 0).all()


# ---------------------------------------------------------------------------------------------------- the numbers


def test_units_are_those_of_a_loop_over_the_tokens(measured: Measured, cwd: Path) -> None:
    found = {row["size"]: row for row in rows(measured.store, cwd, "units", "resamples=100", "ties=mid")}
    assert list(found) == ["xs", "s", "m", "l"]
    for size, run in runs_by_size(measured.store).items():
        row, V = found[size], run["vocab_size"]
        rank = np.sort(rank_by_hand(run, "mid"))
        n, n_bytes = len(rank), manifests(measured.store)[run["run_id"]]["n_bytes_scored"]
        nats = -sum(float(logprob) for logprob in run["logprob"])
        assert row["nats_per_token"] == pytest.approx(nats / n)
        assert row["bits_per_byte"] == pytest.approx(nats / math.log(2) / n_bytes)
        assert row["tokens_per_byte"] == pytest.approx(n / n_bytes)
        for percent in (50, 90, 99):
            smallest = next(r for i, r in enumerate(rank, 1) if 100 * i >= percent * n)
            assert row[f"rank_{percent}"] == smallest
            assert row[f"relative_rank_{percent}"] == pytest.approx(smallest / V)
        assert row["rbp_at_0.001_V"] is None  # V is 320
        assert row["rbp_at_0.01_V"] == pytest.approx(sum(r <= 3.2 for r in rank) / n)


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
    assert max(len(line) for line in printed.splitlines() if not re.match(r"[\w/]+: |Rank/V and", line)) <= 80


def test_a_run_that_does_not_know_its_bytes_has_no_bits_per_byte(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(S=(1000,)), seed=1)
    for run in Store(tmp_path / "store").run_ids():
        path = tmp_path / "store" / "runs" / run / "documents.parquet"
        pq.write_table(pq.read_table(path).drop_columns("n_bytes_scored"), path)
        reseal(path.parent)
    (row,) = rows(tmp_path / "store", cwd, "units", "resamples=50")
    assert (row["bits_per_byte"], row["bits_per_byte_lo"], row["tokens_per_byte"]) == (None, None, None)
    assert row["nats_per_token_lo"] < row["nats_per_token"] < row["nats_per_token_hi"]
    assert "measured before bytes" in here("units", "--store", tmp_path / "store", cwd=cwd, check=0).stdout


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


def test_one_document_has_no_interval(tmp_path: Path, cwd: Path) -> None:
    write_store(tmp_path / "store", Truth(S=(1000,)), seed=1, n_documents=1)
    (row,) = rows(tmp_path / "store", cwd, "units", "resamples=50")
    assert row["rank_50"] >= 1
    assert {value for name, value in row.items() if name.endswith(("_lo", "_hi"))} == {None}


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Documents whose lengths, bytes and ranks vary together; the truth is that of very many of them."""
    rng = np.random.default_rng(8)

    def draw(D: int) -> tuple[pa.Table, Any]:
        luck_D, n_D = rng.normal(size=D), rng.poisson(40, D) + 1
        doc = np.repeat(np.arange(D), n_D)
        rank = np.ceil(np.exp(2 + 0.5 * luck_D[doc] + 1.5 * rng.normal(size=len(doc)))).clip(1, 5000)
        columns = {"doc_id": doc, "rank": rank, "n_tokens": np.ones(len(doc), int), "sum_logprob": -np.log1p(rank)}
        return pa.table(columns), n_D * (4 + 0.3 * luck_D)

    counts, bytes_D = draw(100_000)
    names = ("bits_per_byte", "nats_per_token", "tokens_per_byte", "rank_50", "rank_90", "rank_99", "rbp_at_0.001_V")
    truth = express(counts, bytes_D, np.ones((1, 100_000), np.int64), 5000, 100_000)
    held = dict.fromkeys(names, 0)
    for seed in range(200):
        counts, bytes_D = draw(60)
        found = express(counts, bytes_D, document_weights(60, 200, seed), 5000, 60)
        for name in names:
            estimate = found[name]
            assert estimate.lo is not None
            assert estimate.hi is not None
            held[name] += estimate.lo <= (truth[name].value or 0) <= estimate.hi
    assert all(180 <= n <= 199 for n in held.values()), held


def test_imported_results_have_no_units(tmp_path: Path, cwd: Path) -> None:
    (tmp_path / "theirs.csv").write_text("size,S,k,rbp\n1,1000,1,0.5\n")
    words = ["source=them", "ties=mid", "family=f", "dataset=d", "--store", tmp_path / "store"]
    here("import", tmp_path / "theirs.csv", *words, cwd=cwd, check=0)
    for verb in ("units", "improve"):
        answer = here(verb, "ties=mid", "--store", tmp_path / "store", cwd=cwd, check=2)
        assert "imported results have none" in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1
