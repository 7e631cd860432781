"""The ways of a family that was measured in four ways, which do not all score the same tokens."""

import csv
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from rbpx.laws.intervals.estimate import document_weights
from tests.support.commands import here
from tests.support.stores import Measured, rank_by_hand, write_jsonl
from tests.support.ways import REFERENCE, SIZES, WITH_BOS, alpha, loss, one, tokens_of, way_of

Rows = list[dict[str, Any]]
RULES = ("pessimistic", "optimistic", "mid")
B = 50
N_DOCUMENTS = 8


@pytest.fixture(scope="module")
def ways(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The family in float32, in bfloat16, in windows of 16, three sizes of it with a BOS; do not write into it."""
    place = tmp_path_factory.mktemp("ways")
    store, cwd = Path(shutil.copytree(measured.store, place / "store")), place / "cwd"
    cwd.mkdir()
    family = measured.family
    here("measure", *family.words(), "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    here("measure", *family.words(), "protocol.window=16", "--store", store, cwd=cwd, check=0)
    here("measure", *family.words("xs", "s", "m"), "model.bos=add", "--store", store, cwd=cwd, check=0)
    return store


@pytest.fixture(scope="module")
def found(ways: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of all ways."""
    return ways_of(ways, tmp_path_factory.mktemp("cwd"))


def ways_of(store: Path, cwd: Path, *words: str) -> Rows:
    words = (f"resamples={B}", "k=[1,10,50]", *words, "--store", str(store), "--format", "json", "--details")
    return list(json.loads(here("audit", "limit=0", *words, cwd=cwd, check=0).stdout))


def test_each_way_is_its_difference_from_the_reference_at_the_sizes_of_both(ways: Path, found: Rows) -> None:
    asked = [(way, ties) for way in SIZES for ties in RULES]
    assert {(way_of(row), row["ties"]) for row in found} == set(asked)
    reference = tokens_of(ways, REFERENCE)
    for way, ties in asked[1:]:
        runs = tokens_of(ways, way)
        assert list(runs) == SIZES[way]
        same_sizes = {size: reference[size] for size in runs}
        largest = list(runs)[-1]
        for k in (1, 10, 50, None):
            quantity = "cross_entropy" if k is None else "rbp"
            row = one(found, way, ties, quantity, k)
            assert (row["kind"], row["size"], row["n_tokens"]) == ("difference", largest, len(runs[largest]["doc_id"]))
            before, after = loss(reference[largest], "pessimistic", k), loss(runs[largest], ties, k)
            assert (row["of"], row["value"]) == pytest.approx((after, after - before), rel=1e-9, abs=1e-12)
            row = one(found, way, ties, f"alpha_{quantity}", k)
            before, after = alpha(same_sizes, "pessimistic", k), alpha(runs, ties, k)
            assert (row["of"], row["n_points"]) == (pytest.approx(after, rel=1e-9), len(runs))
            assert row["value"] == pytest.approx(after - before, rel=1e-6, abs=1e-9)
    by_rule = [[row["of"] for row in found if row["ties"] == ties and row["dtype"] == "bfloat16"] for ties in RULES]
    assert by_rule[1] != by_rule[2]  # this family has ties that tell the rules apart


def test_documents_are_drawn_together_on_both_sides(ways: Path, found: Rows) -> None:
    """The interval is that of differences of resampled ratios, document by document, in numpy."""
    weights_BD = document_weights(N_DOCUMENTS, B, 42)
    sides = []
    for way, ties in ((REFERENCE, "pessimistic"), (WITH_BOS, "mid")):
        tokens = tokens_of(ways, way)["m"]
        hits_D = np.bincount(tokens["doc_id"], rank_by_hand(tokens, ties) <= 10, N_DOCUMENTS)
        sides.append((weights_BD @ hits_D) / (weights_BD @ np.bincount(tokens["doc_id"], minlength=N_DOCUMENTS)))
    n = len(np.unique(tokens["doc_id"]))  # one of the documents is a single token, which is not scored
    assert n == N_DOCUMENTS - 1
    far = norm.cdf(-math.sqrt(n / (n - 1)) * student_t.ppf(0.975, n - 1))
    ends = np.quantile(sides[1] - sides[0], [far, 1 - far])
    row = one(found, WITH_BOS, "mid", "rbp", 10)
    assert (row["lo"], row["hi"]) == pytest.approx(tuple(ends), abs=1e-5)
    assert row["lo"] < row["value"] < row["hi"]


def test_texts_are_compared_each_by_itself_and_csv_has_the_same_rows(
    ways: Path, measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    store = Path(shutil.copytree(ways, tmp_path / "store"))
    text = write_jsonl(tmp_path / "other.jsonl", "The sea reads nothing.", "A ship that leaves the harbour.")
    here("measure", *measured.family.words("xs", "s", text=text), "--store", store, cwd=cwd, check=0)
    rows = ways_of(store, cwd)
    assert len({row["text_hash"] for row in rows}) == 2
    alone = [row for row in rows if row["text_hash"] != rows[0]["text_hash"]]
    assert {row["quantity"] for row in alone} in ({"rbp", "cross_entropy"}, {row["quantity"] for row in rows})
    answer = here(
        "audit", "limit=0", f"resamples={B}", "k=[1,10,50]", "--store", store, "--format", "csv", cwd=cwd, check=0
    )
    lines = list(csv.DictReader(io.StringIO(answer.stdout)))
    assert [line["value"] for line in lines] == ["" if r["value"] is None else repr(r["value"]) for r in rows]
