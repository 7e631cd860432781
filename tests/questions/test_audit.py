"""Runs measured again in float32: what moved as a loop over tokens counts it, what is refused, intervals that hold."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from rbpx.laws.intervals.estimate import document_weights
from rbpx.questions.audit.analysis import ROUNDING
from rbpx.runs.shifts import shift
from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.asking import Asked, Rows
from tests.support.audits import audit, pairs_by_hand
from tests.support.composed import here
from tests.support.damage import say
from tests.support.stores import Measured, manifests, rank_by_hand, reseal, runs_by_size, snapshot

SIZES = ("xs", "s", "m")


def of_run(found: Rows, size: str, law: str = "rbp", k: int | None = None) -> dict[str, Any]:
    (row,) = [r for r in found if (r["kind"], r.get("size"), r["law"], r["k"]) == ("run", size, law, k)]
    return row


@pytest.fixture(scope="module")
def both(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the family in float32, and three sizes of it in bfloat16; do not write into it."""
    place = tmp_path_factory.mktemp("both")
    store, cwd = Path(shutil.copytree(measured.store, place / "store")), place / "cwd"
    cwd.mkdir()
    here("measure", *measured.family.words(*SIZES), "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    return store


@pytest.fixture(scope="module")
def found(both: Path) -> Asked:
    """The audit of the bfloat16 runs, which writes nothing."""
    before = snapshot(both)
    asked, failed = audit(both, k=[1, 10])
    assert snapshot(both) == before
    assert failed == []
    return asked


# ---------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(("ties", "share"), [("pessimistic", 1), ("mid", 0.5)])
def test_what_moved_is_what_a_loop_over_both_runs_counts(both: Path, found: Asked, ties: str, share: float) -> None:
    found = found if ties == "pessimistic" else audit(both, k=[1, 10], ties=ties)[0]
    assert {row["dtype"] for row in found.rows} == {"bfloat16"}
    crossed = 0
    for size in SIZES:
        pairs = pairs_by_hand(both, size)
        ranks = [tuple(side[0] + share * side[1] + 1 for side in pair) for pair in pairs]
        moves = [abs(again - stored) for stored, again in ranks if again != stored]
        row = of_run(found.rows, size, "cross_entropy")
        assert (row["n_tokens"], row["n_moved"]) == (len(pairs), len(moves))
        assert row["n_changed"] == sum(one[:2] != other[:2] for one, other in pairs) > 0
        assert (row["median_move"], row["largest_move"]) == (np.median(moves), max(moves))
        nats = [[-side[2] for side in pair] for pair in pairs]
        assert row["largest_logprob_move"] == pytest.approx(max(abs(a - b) for a, b in nats), abs=1e-5)
        means = tuple(sum(side) / len(pairs) for side in zip(*nats, strict=True))
        assert (row["stored"], row["again"]) == pytest.approx(means, rel=1e-6)  # the audit reads in other batches
        assert row["difference"] == pytest.approx(means[1] - means[0], abs=1e-6)
        for k in (1, 10):
            row = of_run(found.rows, size, k=k)
            hits = [sum(rank[side] <= k for rank in ranks) / len(ranks) for side in (0, 1)]
            assert (row["stored"], row["again"]) == pytest.approx(tuple(hits), rel=1e-12)
            assert row["n_lost"] == sum(stored <= k < again for stored, again in ranks)
            assert row["n_gained"] == sum(again <= k < stored for stored, again in ranks)
            crossed += row["n_lost"] + row["n_gained"]
    assert crossed > 0


def test_documents_are_drawn_together_on_both_sides(both: Path, found: Asked) -> None:
    """The interval is that of differences of resampled means, document by document, in numpy."""
    doc_id = runs_by_size(both, "bfloat16")["m"]["doc_id"]
    nats_2N = np.array([[-side[2] for side in pair] for pair in pairs_by_hand(both, "m")]).T
    tokens_D = np.bincount(doc_id).astype(float)
    weights_BD = document_weights(len(tokens_D), 50, 42)
    drawn_2B = [(weights_BD @ np.bincount(doc_id, nats)) / (weights_BD @ tokens_D) for nats in nats_2N]
    n = tokens_D.sum() ** 2 / (tokens_D @ tokens_D)
    far = norm.cdf(-math.sqrt(n / (n - 1)) * student_t.ppf(0.975, n - 1))
    ends = np.quantile(drawn_2B[1] - drawn_2B[0], [far, 1 - far])
    row = of_run(found.rows, "m", "cross_entropy")
    assert (row["difference_lo"], row["difference_hi"]) == pytest.approx(tuple(ends), abs=1e-6)


def test_a_sample_holds_the_same_documents_at_every_size(both: Path, found: Asked) -> None:
    rows = audit(both, limit=4, seed=1, k=1)[0].of_kind("run")
    assert {row["n_documents"] for row in rows} == {4}
    assert len({row["n_tokens"] for row in rows}) == 1
    assert "mine on file, window 64, bfloat16: Ranks measured again in float32, 8 of 8 documents" in found.words
    assert "4 of 7 runs were measured in float32 by these versions" in found.messages[0]


def test_the_shift_of_alpha_is_that_between_two_lines(both: Path, found: Asked) -> None:
    laws = {(row["law"], row["k"]): row for row in found.of_kind("law")}
    assert set(laws) == {("rbp", 1), ("rbp", 10), ("cross_entropy", None)}
    for (_, k), row in laws.items():
        alphas, losses = [], []
        for dtype in ("bfloat16", "float32"):
            runs = [run for size, run in runs_by_size(both, dtype).items() if size in SIZES]
            ranks = [rank_by_hand(run, "pessimistic") for run in runs]
            nats = [-np.mean(run["logprob"].astype(np.float64)) for run in runs]
            losses.append(nats if k is None else [-np.log(np.mean(rank <= k)) for rank in ranks])
            alphas.append(-np.polyfit(np.log([run["non_embedding_params"] for run in runs]), np.log(losses[-1]), 1)[0])
        assert (row["stored"], row["again"]) == pytest.approx(tuple(alphas), rel=1e-5)
        assert row["difference"] == pytest.approx(alphas[1] - alphas[0], rel=1e-3, abs=1e-7)
        if losses[0] == losses[1]:  # no rank crossed k at any size
            assert (row["difference"], row["difference_lo"], row["status"]) == (0, None, "no_trend")
        else:
            assert row["difference_lo"] < row["difference"] < row["difference_hi"]
            assert row["status"] is None  # nobody judged it


# ------------------------------------------------------------------------------------------- what is not the same now


def change(store: Path, size: str, **facts: Any) -> None:
    """Let the float32 run of a size say something else about itself."""
    say(store / "runs" / runs_by_size(store)[size]["run_id"] / "manifest.json", **facts)


def rewrite(store: Path, size: str, **columns: Any) -> None:
    """Change columns of the first five tokens of a float32 run."""
    path = store / "runs" / runs_by_size(store)[size]["run_id"] / "tokens.parquet"
    table = pq.read_table(path)
    for name, values in columns.items():
        column = table[name].to_numpy().copy()
        column[:5] += values
        table = table.set_column(table.column_names.index(name), table.schema.field(name), pa.array(column))
    pq.write_table(table, path)
    reseal(path.parent)


def test_a_float32_run_comes_out_the_same_in_other_batches_unless_it_was_something_else(own_store: Path) -> None:
    rewrite(own_store, "s", greater=7, logprob=np.array([0, 0, 0, 2 * ROUNDING.nats, 0], np.float32))
    change(own_store, "m", weights_hash="1" * 16)
    change(own_store, "l", tokenizer_hash="1" * 16)
    before = snapshot(own_store)
    asked, failed = audit(own_store, dtype="float32", tokens_per_batch=64, k=1)
    assert snapshot(own_store) == before
    whole, row = (of_run(asked.rows, size, k=1) for size in ("xs", "s"))
    assert whole["is_same"] is True
    assert whole["n_changed"] <= whole["n_tokens"] / 1000
    assert (row["is_same"], row["n_changed"], row["n_moved"], row["median_move"]) == (False, 5, 5, 7)
    assert row["largest_logprob_move"] == pytest.approx(2 * ROUNDING.nats, rel=1e-2)
    (line,) = [line for line in asked.table().splitlines() if line.split()[:1] == ["s"] and line.split()[-1] == "no"]
    assert "%" in line
    of_m, of_l = failed
    assert of_m.startswith("mine m on file")
    assert "is not what was measured (weights_hash" in of_m
    assert "is not what was measured (tokenizer_hash" in of_l


def test_other_tokens_another_text_and_a_model_that_is_gone_are_refused(own_store: Path) -> None:
    rewrite(own_store, "xs", token_id=np.array([1, 0, 0, 0, 0]))
    change(own_store, "s", text_hash="1" * 16)
    store = Store(own_store)
    of_s = next(cell for cell in store.records("cells") if cell["run_id"] == runs_by_size(own_store)["s"]["run_id"])
    store.write_record("cells", of_s["cell_key"], of_s | {"text_hash": "1" * 16})
    (cell,) = (cell for cell in store.records("cells") if cell["size"] == "m")
    gone = json.loads(json.dumps(cell).replace(cell["model"], str(own_store / "gone" / "m")))
    store.write_record("cells", cell["cell_key"], gone)
    asked, failed = audit(own_store, dtype="float32", size=["xs", "s", "m"])
    assert asked.rows == []
    reasons = {each.split()[1]: each for each in failed}
    assert "other tokens" in reasons["xs"]
    assert "is not what was measured (text_hash" in reasons["s"]
    assert str(own_store / "gone" / "m") in reasons["m"]


def test_the_traceback_of_a_model_that_fails_again_is_kept_until_it_succeeds(
    own_store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> None:
        raise KeyError("no such layer")

    def kept() -> Rows:
        with connect(Store(own_store)) as connection:
            return list(connection.sql("SELECT size, error, traceback FROM failures").to_arrow_table().to_pylist())

    words = ("audit", "resamples=20", "size=s", "limit=2", "dtype=float32", "--store", own_store)
    with monkeypatch.context() as patch:
        patch.setattr("rbpx.questions.audit.rescore.measure_windows", failing)
        said = here(*words, cwd=cwd, check=1).stderr
    (line,) = [line for line in said.splitlines() if "no such layer" in line]
    assert "mine s on file (float32)" in line
    assert line.endswith("its traceback is in the store's relation failures")
    (failure,) = kept()
    assert (failure["size"], failure["error"]) == ("s", "audit failed: KeyError: 'no such layer'")
    assert "in failing" in failure["traceback"]
    here(*words, cwd=cwd, check=0)
    assert kept() == []


def test_float32_runs_are_left_out_until_they_are_asked_for_or_are_of_other_versions(own_store: Path) -> None:
    asked, _ = audit(own_store)
    assert asked.rows == []
    (line,) = asked.messages
    assert "dtype=float32" in line
    run = manifests(own_store)[runs_by_size(own_store)["s"]["run_id"]]
    change(own_store, "s", versions=run["versions"] | {"torch": "1.0"})
    asked, _ = audit(own_store)
    assert {row["size"] for row in asked.of_kind("run")} == {"s"}
    assert "3 of 4 runs were measured in float32 by these versions" in asked.messages[0]
    assert "no rank moved" in asked.words


# -------------------------------------------------------------------------------------------------------- intervals


def test_there_is_no_interval_where_the_documents_tell_no_spread() -> None:
    flat, noisy = np.full(100, 0.5), np.random.default_rng(1).normal(0.5, 0.1, 100)
    assert (shift(0.5, 0.5, flat, flat, 9).difference.lo, shift(0.5, 0.6, flat, noisy, 1).difference.hi) == (None, None)
    assert shift(0.5, 0.6, flat[:10], noisy[:10], 9).difference.lo is None  # too few replicates
    known = shift(0.5, 0.6, flat, noisy, 9).difference
    assert known.value == pytest.approx(0.1)
    # Of 9 documents Student's t with 8 degrees of freedom is 2.306; times sqrt(9 / 8), the normal quantile of 0.722 %.
    assert (known.lo, known.hi) == pytest.approx(tuple(np.quantile(noisy - 0.5, [0.00722, 0.99278])), abs=1e-4)
