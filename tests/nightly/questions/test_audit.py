"""Runs measured again in float32: mid ranks, samples, models that were changed, sweeps, and coverage by the hundred."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.audits import covered_shifts, pairs_by_hand
from tests.support.commands import Answer, here
from tests.support.stores import (
    SHAPES,
    Family,
    Measured,
    build_member,
    run_folders,
    snapshot,
    write_jsonl,
)

Rows = list[dict[str, Any]]
QUICK = "resamples=50"


def rows(store: Path, cwd: Path, *words: object, check: int = 0) -> Rows:
    answer = here("audit", QUICK, *words, "--store", store, "--format", "json", cwd=cwd, check=check)
    return [row for row in json.loads(answer.stdout) if row["kind"] in ("run", "law")]  # beside those of ways


def of_run(found: Rows, size: str, law: str = "rbp", k: int | None = None) -> dict[str, Any]:
    (row,) = [r for r in found if (r["kind"], r.get("size"), r["law"], r["k"]) == ("run", size, law, k)]
    return row


@pytest.fixture(scope="module")
def both(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the family in float32 and in bfloat16; do not write into it."""
    place = tmp_path_factory.mktemp("both")
    store, cwd = Path(shutil.copytree(measured.store, place / "store")), place / "cwd"
    cwd.mkdir()
    here("measure", *measured.family.words(), "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    return store


# ---------------------------------------------------------------------------------------------------------- numbers


def test_mid_ranks_that_moved_are_what_a_loop_over_both_runs_counts(both: Path, cwd: Path) -> None:
    share = 0.5
    found = rows(both, cwd, "dtype=bfloat16", "ties=mid", "k=[1,10]")
    assert {row["dtype"] for row in found} == {"bfloat16"}
    crossed = 0
    for size in SHAPES:
        pairs = pairs_by_hand(both, size)
        ranks = [tuple(side[0] + share * side[1] + 1 for side in pair) for pair in pairs]
        moves = [abs(again - stored) for stored, again in ranks if again != stored]
        row = of_run(found, size, "cross_entropy")
        assert row["n_tokens"] == len(pairs)
        assert row["n_changed"] == sum(one[:2] != other[:2] for one, other in pairs) > 0
        assert row["n_moved"] == len(moves) > 0
        assert (row["median_move"], row["largest_move"]) == (np.median(moves), max(moves))
        nats = [[-side[2] for side in pair] for pair in pairs]
        assert row["largest_logprob_move"] == pytest.approx(max(abs(a - b) for a, b in nats), abs=1e-5)
        means = [sum(side) / len(pairs) for side in zip(*nats, strict=True)]
        assert (row["stored"], row["again"]) == pytest.approx(tuple(means), rel=1e-6)  # read in other batches
        assert row["difference"] == pytest.approx(means[1] - means[0], abs=1e-6)
        assert row["difference_lo"] <= row["difference"] <= row["difference_hi"]
        for k in (1, 10):
            row = of_run(found, size, k=k)
            hits = [sum(rank[side] <= k for rank in ranks) / len(ranks) for side in (0, 1)]
            assert (row["stored"], row["again"]) == pytest.approx(tuple(hits), rel=1e-12)
            assert row["n_lost"] == sum(stored <= k < again for stored, again in ranks)
            assert row["n_gained"] == sum(again <= k < stored for stored, again in ranks)
            assert row["difference"] * len(ranks) == pytest.approx(row["n_gained"] - row["n_lost"], abs=1e-9)
            crossed += row["n_lost"] + row["n_gained"]
    assert crossed > 0


def test_a_sample_holds_the_same_documents_at_every_size(both: Path, cwd: Path) -> None:
    n_tokens = {row["doc_id"]: row["n_scored"] for row in documents_of(both)}
    seen = set()
    for seed in (1, 2):
        found = rows(both, cwd, "dtype=bfloat16", "limit=4", f"seed={seed}", "k=1")
        (n,) = {row["n_tokens"] for row in found if row["kind"] == "run"}
        assert {row["n_documents"] for row in found} == {4}
        whole = sorted(n_tokens.values())
        assert sum(whole[:4]) <= n <= sum(whole[-4:])
        seen.add(n)
    assert len(seen) > 1


def documents_of(store: Path) -> Rows:
    """The documents of one run."""
    folder = next(iter(run_folders(store).values()))
    return list(pq.read_table(folder / "documents.parquet").to_pylist())


def test_fifty_documents_are_measured_again_unless_a_limit_is_given(family: Family, cwd: Path, tmp_path: Path) -> None:
    text = write_jsonl(tmp_path / "many.jsonl", *(f"Letter {n} left the harbour." for n in range(60)))
    store = tmp_path / "store"
    here("measure", *family.words("xs", text=text), "--store", store, cwd=cwd, check=0)
    assert {row["n_documents"] for row in rows(store, cwd, "dtype=float32")} == {50}
    assert {row["n_documents"] for row in rows(store, cwd, "dtype=float32", "limit=1000")} == {60}


# -------------------------------------------------------------------------------------------------------- refusals


def assert_told(answer: Answer, *names: str) -> None:
    """One line about one run, and what came of the others."""
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert [name for name in names if name not in line] == [], line
    assert "3 sizes, 8 of 8 documents" in answer.stdout


@pytest.fixture
def moved(family: Family, cwd: Path, tmp_path: Path) -> tuple[Path, Family]:
    """A store of a family of which one model and the text may be changed."""
    folders = family.folders | {"s": build_member(tmp_path / "models" / "s", "s")}
    text = Path(shutil.copy(family.text, tmp_path / "own.jsonl"))
    own = Family(folders, text)
    here("measure", *own.words(), "--store", tmp_path / "store", cwd=cwd, check=0)
    return tmp_path / "store", own


@pytest.mark.parametrize("harm", ["weights", "tokenizer", "gone"])
def test_a_model_that_is_not_the_one_measured_is_refused_and_the_others_go_on(
    harm: str, moved: tuple[Path, Family], cwd: Path
) -> None:
    store, own = moved
    if harm == "weights":
        build_member(own.folders["s"], "s", seed=9)
    elif harm == "tokenizer":
        tokenizer = json.loads((own.folders["s"] / "tokenizer.json").read_text())
        tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-1]
        (own.folders["s"] / "tokenizer.json").write_text(json.dumps(tokenizer))
    else:
        shutil.rmtree(own.folders["s"])
    before = snapshot(store)
    answer = here("audit", QUICK, "dtype=float32", "--store", store, cwd=cwd, check=1)
    assert_told(answer, "mine s on own", {"gone": str(own.folders["s"])}.get(harm, f"{harm}_hash"))
    assert snapshot(store) == before
    (law,) = {row["n_points"] for row in rows(store, cwd, "dtype=float32", check=1) if row["kind"] == "law"}
    assert law == 3


def test_a_text_that_is_not_the_one_measured_is_refused(moved: tuple[Path, Family], cwd: Path) -> None:
    store, own = moved
    write_jsonl(own.text, "Another text.", "Than before.")
    answer = here("audit", QUICK, "dtype=float32", "size=xs", "--store", store, cwd=cwd, check=1)
    assert "measured again" not in answer.stdout
    assert "is not what was measured (text_hash" in answer.stderr


# ------------------------------------------------------------------------------------------------------ what is printed


def test_the_rows_are_the_same_in_json_and_csv_and_over_a_sweep(both: Path, cwd: Path) -> None:
    asked = ("dtype=bfloat16", "size=[xs,s,m]", "k=[1,10]")
    found = rows(both, cwd, *asked)
    printed = here("audit", QUICK, *asked, "--store", both, "--format", "csv", cwd=cwd, check=0).stdout
    lines = [line for line in csv.DictReader(io.StringIO(printed)) if line["kind"] in ("run", "law")]
    assert len(lines) == len(found) == 3 * 3 + 3
    for line, row in zip(lines, found, strict=True):
        assert {name: line[name] for name in row if row[name] is None} == {n: "" for n in row if row[n] is None}
        assert line["difference"] == ("" if row["difference"] is None else repr(row["difference"]))
    swept = rows(both, cwd, "-m", "dtype=bfloat16,float32", *asked[1:])
    assert [row for row in swept if row["dtype"] == "bfloat16"] == found
    assert len(swept) == 2 * len(found)


# -------------------------------------------------------------------------------------------------------- intervals


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """200 texts: shifts of RBP_1 and cross-entropy of the smallest model, and of the exponents of their laws."""
    covered = covered_shifts(200)
    assert {name: n for name, n in covered.items() if not 180 <= n <= 198} == {}, covered
