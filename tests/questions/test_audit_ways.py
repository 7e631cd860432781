"""The ways in which one text was measured: their differences, against counts by hand and numpy's lines."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from rbpx.laws.intervals.estimate import document_weights
from tests.support.asking import Asked, Rows, ask, imported, refused
from tests.support.filled import LENGTHS, filled
from tests.support.stores import SHAPES, rank_by_hand
from tests.support.synthetic import Truth, write_store
from tests.support.ways import REFERENCE, SIZES, WITH_BOS, alpha, loss, one, tokens_of, way_of

RULES = ("pessimistic", "optimistic", "mid")
B = 50
KS = (1, 5, 10)
N_DOCUMENTS = len(LENGTHS)


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family in float32, in bfloat16, in windows of 16, three sizes of it with a BOS."""
    store = tmp_path_factory.mktemp("ways") / "store"
    for seed, ((dtype, bos, window), sizes) in enumerate(SIZES.items()):
        filled(store, seed, sizes, dtype=dtype, bos=bos, window=window)
    return store


@pytest.fixture(scope="module")
def asked(ways: Path) -> Asked:
    return ways_of(ways)


@pytest.fixture(scope="module")
def found(asked: Asked) -> Rows:
    return asked.rows


def ways_of(store: Path, **keys: Any) -> Asked:
    return ask(store, "audit", **{"resamples": B, "k": list(KS), "limit": 0, **keys})


def test_the_reference_is_the_papers_protocol_in_float32_with_pessimistic_ranks(ways: Path, found: Rows) -> None:
    first = [row for row in found if row["kind"] == "reference"]
    assert found[: len(first)] == first
    assert {(r["protocol"], way_of(r), r["ties"]) for r in first} == {("paper", REFERENCE, "pessimistic")}
    runs = tokens_of(ways, REFERENCE)
    for k in (*KS, None):
        quantity = "cross_entropy" if k is None else "rbp"
        row = one(found, REFERENCE, "pessimistic", quantity, k)
        assert row["size"] == "l"
        assert row["value"] == pytest.approx(loss(runs["l"], "pessimistic", k), rel=1e-9)
        assert row["lo"] < row["value"] < row["hi"]
        row = one(found, REFERENCE, "pessimistic", f"alpha_{quantity}", k)
        assert row["value"] == pytest.approx(alpha(runs, "pessimistic", k), rel=1e-9)
        assert row["n_points"] == len(SHAPES)


def test_each_way_is_its_difference_from_the_reference_at_the_sizes_of_both(ways: Path, found: Rows) -> None:
    asked = [(way, ties) for way in SIZES for ties in RULES]
    assert {(way_of(row), row["ties"]) for row in found} == set(asked)
    reference = tokens_of(ways, REFERENCE)
    for way, ties in asked[1:]:
        runs = tokens_of(ways, way)
        assert list(runs) == SIZES[way]
        same_sizes = {size: reference[size] for size in runs}
        largest = list(runs)[-1]
        for k in (*KS, None):
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
    tokens_D = np.bincount(tokens_of(ways, REFERENCE)["m"]["doc_id"])
    n = tokens_D.sum() ** 2 / (tokens_D @ tokens_D)
    far = norm.cdf(-math.sqrt(n / (n - 1)) * student_t.ppf(0.975, n - 1))
    ends = np.quantile(sides[1] - sides[0], [far, 1 - far])
    row = one(found, WITH_BOS, "mid", "rbp", 10)
    assert (row["lo"], row["hi"]) == pytest.approx(tuple(ends), abs=1e-5)
    assert row["lo"] < row["value"] < row["hi"]


def test_a_tie_rule_leaves_the_cross_entropy_the_same(found: Rows) -> None:
    row = one(found, REFERENCE, "mid", "cross_entropy", None)
    assert (row["value"], row["lo"], row["hi"]) == (0, None, None)


def test_the_rule_that_is_asked_for_is_that_of_the_reference(ways: Path) -> None:
    rows = ways_of(ways, ties="mid", k=1).rows
    assert {row["ties"] for row in rows if row["kind"] == "reference"} == {"mid"}
    assert one(rows, REFERENCE, "pessimistic", "rbp", 1)["kind"] == "difference"


def test_the_table_is_whole_in_eighty_columns(asked: Asked) -> None:
    printed = asked.table()
    lines = [line.strip() for line in printed.splitlines() if line.startswith(" ")]
    assert max(map(len, lines)) <= 78
    reference = "paper, window 64, padding counted, bos tokenizer, float32, ties pessimistic"
    assert f"Shifts are in thousandths, from {reference}.\n" in printed
    for label in ("ties optimistic ", "bfloat16", "bos add", "window 16"):
        assert any(line.startswith(label) for line in lines), label
    assert any(line.startswith("bos add") and " 3 sizes " in line for line in lines)
    assert not any(line.startswith("ties optimistic ") and " CE " in line for line in lines), "no document differs"
    assert "no other way" not in printed


def test_the_first_line_says_which_numbers_differ_beyond_noise(asked: Asked, found: Rows) -> None:
    ways = [row for row in found if row["kind"] == "difference" and len(_apart(row)) == 1]
    beyond = [row for row in ways if row["lo"] is not None and not row["lo"] <= 0 <= row["hi"]]
    of_alpha = [row for row in beyond if row["quantity"].startswith("alpha")]
    most = max((row["value"] for row in of_alpha or beyond), key=abs)
    answer, *rest = asked.table(100, details=False).splitlines()
    assert answer.startswith(f"{len(beyond)} of {len(ways)} numbers differ beyond noise: ")
    assert f" by {most:.4f} (95 %: " in answer
    assert max(len(line) for line in rest if line.startswith(" ")) <= 100


def _apart(row: dict[str, Any]) -> set[str]:
    """In what a row differs from the reference."""
    protocol, pessimistic = dict(zip(("dtype", "bos", "window"), REFERENCE, strict=True)), {"ties": "pessimistic"}
    return {name for name, value in (protocol | pessimistic).items() if row[name] != value}


def test_one_way_alone_has_its_tie_rules_and_says_how_to_get_another(tmp_path: Path) -> None:
    alone = ways_of(filled(tmp_path / "store").root)
    assert "no other way was measured, so measure one: " in alone.words
    assert ": The reference " in alone.words
    assert any(line.startswith(" ties optimistic ") for line in alone.table().splitlines())


def test_what_is_the_same_is_one_line_for_all_texts_and_no_table(tmp_path: Path) -> None:
    """Drawn ranks have no ties, so the rules give the same."""
    for dataset in ("one", "other"):
        write_store(tmp_path / "store", Truth(S=(1_000, 10_000, 100_000)), 1, 10, 30, dataset=dataset)
    alike = ask(tmp_path / "store", "audit", resamples=30, limit=0)
    assert len({row["text_hash"] for row in alike.rows}) == 2  # each text is compared by itself
    line, *rest = alike.table().splitlines()
    assert "".join(rest) == ""
    assert line.startswith("No number of drawn on one; drawn on other differs beyond noise under ties optimistic; ")
    assert "ties mid; no other way was measured, so measure one" in line


def test_imported_results_have_no_tokens_to_choose_by(tmp_path: Path) -> None:
    table = "size,S,k,rbp\n" + "".join(f"{S},{S},1,{0.3 + S / 1e7}\n" for S in (1_000, 10_000, 100_000))
    store = imported(tmp_path / "store", table, ties="optimistic", family="a", dataset="b")
    with refused("audit looks at tokens"):
        ask(store, "audit", ties="optimistic", limit=0)


def test_ways_are_compared_without_loading_a_model(ways: Path) -> None:
    words = ("audit", "limit=0", "resamples=10", "k=1", "--store", str(ways), "--format", "json")
    program = f"import sys; from rbpx.__main__ import main; main({list(words)!r}); assert 'torch' not in sys.modules"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {row["kind"] for row in json.loads(answer.stdout)} == {"reference", "difference"}
