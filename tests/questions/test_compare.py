"""Two models on one text: bytes met by a loop over bytes, hits counted by numpy, signs that flip and nothing else."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import t as student_t

from rbpx.questions.compare.meeting import RunTokens, meet
from rbpx.questions.compare.parts import kind_of, part_of
from tests.support.asking import Asked, ask, refused
from tests.support.filled import filled
from tests.support.stores import reseal, runs_by_size, without_bytes


def byte_nats(tokens: RunTokens) -> dict[tuple[int, int], float]:
    """Nats of each byte, by a loop; a token without bytes gives its nats to the one before it, if there is one."""
    owned: list[list[Any]] = []
    for doc, begin, length, nats in zip(tokens.doc_N, tokens.begin_N, tokens.length_N, tokens.nats_N, strict=True):
        if length:
            owned.append([doc, begin, length, nats])
        elif owned and owned[-1][0] == doc and owned[-1][1] + owned[-1][2] == begin:
            owned[-1][3] += nats
    return {(doc, begin + i): nats / length for doc, begin, length, nats in owned for i in range(length)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("compare") / "store").root


@pytest.fixture(scope="module")
def there(store: Path) -> Asked:
    """The smallest model beside the largest."""
    return ask(store, "compare", a="mine/xs", b="mine/l", k=[1, 10])


def tokens_of(store: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tokens of the smallest model, and of the largest."""
    runs = runs_by_size(store)
    return runs["xs"], runs["l"]


# ----------------------------------------------------------------------------------------------------- byte by byte


def drawn_tokens(rng: np.random.Generator, n_documents: int, n_bytes: int) -> RunTokens:
    """Documents cut at random: some bytes at the beginning and the end unscored, some tokens without a byte."""
    doc, begin, length = [], [], []
    for doc_id in range(n_documents):
        at = int(rng.integers(0, 6))
        while at < n_bytes - rng.integers(0, 9):
            size = int(rng.integers(0 if length else 1, 7))
            doc.append(doc_id), begin.append(at), length.append(size)
            at += size
    nats = rng.exponential(3, len(doc))
    return RunTokens(np.array(doc), np.array(begin), np.array(length), nats)


@pytest.mark.parametrize("seed", range(6))
def test_stretches_hold_the_nats_of_the_bytes_that_both_scored(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = drawn_tokens(rng, 5, 60), drawn_tokens(rng, 5, 60)
    met, of_a, of_b = meet(a, b), byte_nats(a), byte_nats(b)
    places = [(d, p) for d, s, n in zip(met.doc_M, met.begin_M, met.length_M, strict=True) for p in range(s, s + n)]
    assert places == sorted(of_a.keys() & of_b.keys())
    for nats_M, of_byte in ((met.nats_a_M, of_a), (met.nats_b_M, of_b)):
        assert nats_M.sum() == pytest.approx(math.fsum(of_byte[place] for place in places), rel=1e-12)
        first = [(d, p) for d, p in zip(met.doc_M, met.begin_M, strict=True)]
        assert nats_M == pytest.approx([of_byte[f] * n for f, n in zip(first, met.length_M, strict=True)], rel=1e-12)


def test_the_parts_of_a_token_are_its_bytes() -> None:
    assert part_of(" naïve", 7, 1, 2) == "na"
    assert part_of("naïve", 5, 0, 2) is None, "five bytes are not what the text is, so nothing is known of it"
    assert [kind_of(t) for t in (" the", "\n  ", "42", "+=", "é", "�", "x1", None)] == [
        *("word", "white space", "number", "punctuation", "non-ASCII", "non-ASCII", "mixed", "unknown")
    ]


# -------------------------------------------------------------------------------------------------- one tokenizer


def test_the_whole_is_the_two_runs_and_their_difference(store: Path, there: Asked) -> None:
    (whole,) = [row for row in there.of_kind("part") if row["by"] == "text"]
    a, b = tokens_of(store)
    n_bytes = a["n_bytes"].sum()
    assert whole["n_bytes"] == n_bytes
    bits = [-math.fsum(run["logprob"].astype(float)) / math.log(2) / n_bytes for run in (a, b)]
    assert [whole["bits_a"], whole["bits_b"]] == pytest.approx(bits, rel=1e-9)
    assert whole["change"] == pytest.approx(bits[1] - bits[0], rel=1e-9)
    # the interval: a ratio of sums over documents, linearised, by a loop
    D = np.unique(a["doc_id"])
    change = [((a["logprob"] - b["logprob"].astype(float))[a["doc_id"] == d]).sum() / math.log(2) for d in D]
    size = [a["n_bytes"][a["doc_id"] == d].sum() for d in D]
    residual = [c - whole["change"] * n for c, n in zip(change, size, strict=True)]
    n = 1 / sum((each / n_bytes) ** 2 for each in size)
    half = student_t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1) * sum(r * r for r in residual)) / n_bytes
    assert whole["change_lo"] == pytest.approx(whole["change"] - half, rel=1e-6)
    assert whole["change_hi"] == pytest.approx(whole["change"] + half, rel=1e-6)
    for by in ("kind", "place", "document"):
        parts = [row for row in there.of_kind("part") if row["by"] == by]
        assert sum(row["n_bytes"] for row in parts) == n_bytes
        assert sum(row["share"] for row in parts) == pytest.approx(1, rel=1e-9)
        change = sum(row["change"] * row["n_bytes"] for row in parts)
        assert change == pytest.approx(whole["change"] * n_bytes, rel=1e-9)


def test_hits_and_moves_are_counted(store: Path, there: Asked) -> None:
    a, b = tokens_of(store)
    rank_a, rank_b = (run["greater"] + run["ties"] + 1 for run in (a, b))
    for row, k in zip(there.of_kind("hits"), (1, 10), strict=True):
        hit_a, hit_b = rank_a <= k, rank_b <= k
        assert row["k"] == k
        assert row["gained"] == pytest.approx((hit_b & ~hit_a).mean())
        assert row["lost"] == pytest.approx((hit_a & ~hit_b).mean())
        assert row["same"] == pytest.approx((hit_a == hit_b).mean())
        assert row["rbp_b"] - row["rbp_a"] == pytest.approx(row["gained"] - row["lost"], abs=1e-12)
    (moves,) = there.of_kind("moves")
    assert [moves["better"], moves["worse"]] == pytest.approx([(rank_b < rank_a).mean(), (rank_b > rank_a).mean()])


def test_a_slice_holds_what_its_condition_says(store: Path) -> None:
    asked = ask(store, "compare", a="mine/xs", b="mine/l", slices={"lost": "rank_a = 1 and rank_b > 1"})
    (part,) = [row for row in asked.of_kind("part") if row["by"] == "slice"]
    a, b = tokens_of(store)
    lost = (a["greater"] + a["ties"] == 0) & (b["greater"] + b["ties"] > 0)
    assert part["n_bytes"] == a["n_bytes"][lost].sum() > 0
    assert part["change"] > 0


# -------------------------------------------------------------------------------------------------- two tokenizers


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on one text, the tokens of one four bytes long, those of the other three, from the seventh byte on."""
    store = filled(tmp_path_factory.mktemp("mixed") / "store", sizes=["xs"])
    (first,) = store.run_ids()
    filled(store.root, 1, ["l"], tokenizer_hash="4" * 16)
    (other,) = set(store.run_ids()) - {first}
    path = store.run_folder(other) / "tokens.parquet"
    table = pq.read_table(path)
    of = {"first_byte": 4 + 3 * table["position"].to_numpy(), "n_bytes": np.full(table.num_rows, 3)}
    for name, values in of.items():
        at, field = table.column_names.index(name), table.schema.field(name)
        table = table.set_column(at, field, pa.array(values, field.type))
    pq.write_table(table, path)
    reseal(path.parent)
    return store.root


def test_models_with_different_tokenizers_meet_at_their_bytes(mixed: Path) -> None:
    runs = runs_by_size(mixed)
    asked = ask(mixed, "compare", a=runs["xs"]["run_id"], b=runs["l"]["run_id"])
    (whole,) = [row for row in asked.of_kind("part") if row["by"] == "text"]
    of = [
        byte_nats(RunTokens(t["doc_id"], t["first_byte"], t["n_bytes"], -t["logprob"].astype(float)))
        for t in runs.values()
    ]
    both = of[0].keys() & of[1].keys()
    assert whole["n_bytes"] == len(both)
    assert 0 < len(both) < min(map(len, of))
    bits = [math.fsum(nats[place] for place in both) / math.log(2) / len(both) for nats in of]
    assert [whole["bits_a"], whole["bits_b"]] == pytest.approx(bits, rel=1e-9)
    assert asked.of_kind("hits") + asked.of_kind("moves") == []


def test_a_run_without_bytes_is_not_compared(store: Path, tmp_path: Path) -> None:
    old = without_bytes(store, tmp_path / "old")
    with refused("before tokens knew their bytes"):
        ask(old, "compare", a="mine/xs", b="mine/l")


# -------------------------------------------------------------------------------------------------------- refusals
