"""Two models on one text: bytes met by a loop over bytes, hits counted in SQL, signs that flip and nothing else."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

from rbpx.analyses.compare.meeting import Tokens, meet
from rbpx.analyses.compare.parts import kind_of, part_of
from tests.support.checkpoints import TINY_TEXT, build_checkpoint
from tests.support.commands import here
from tests.support.stores import Measured, columns_of, runs_by_size, without_bytes, write_jsonl

Rows = list[dict[str, Any]]


def compared(store: Path, cwd: Path, *words: str) -> Rows:
    printed = here("compare", *words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout
    return list(json.loads(printed))


def of_kind(rows: Rows, kind: str) -> Rows:
    return [row for row in rows if row["kind"] == kind]


# ----------------------------------------------------------------------------------------------------- byte by byte


def drawn_tokens(rng: np.random.Generator, n_documents: int, n_bytes: int) -> Tokens:
    """Documents cut at random: some bytes at the beginning and the end unscored, some tokens without a byte."""
    doc, begin, length = [], [], []
    for doc_id in range(n_documents):
        at = int(rng.integers(0, 6))
        while at < n_bytes - rng.integers(0, 9):
            size = int(rng.integers(0 if length else 1, 7))
            doc.append(doc_id), begin.append(at), length.append(size)
            at += size
    nats = rng.exponential(3, len(doc))
    return Tokens(np.array(doc), np.array(begin), np.array(length), nats)


def byte_nats(tokens: Tokens) -> dict[tuple[int, int], float]:
    """Nats of each byte, by a loop; a token without bytes gives its nats to the one before it, if there is one."""
    owned: list[list[Any]] = []
    for doc, begin, length, nats in zip(tokens.doc_N, tokens.begin_N, tokens.length_N, tokens.nats_N, strict=True):
        if length:
            owned.append([doc, begin, length, nats])
        elif owned and owned[-1][0] == doc and owned[-1][1] + owned[-1][2] == begin:
            owned[-1][3] += nats
    return {(doc, begin + i): nats / length for doc, begin, length, nats in owned for i in range(length)}


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


def test_the_whole_is_the_two_runs_and_their_difference(measured: Measured, cwd: Path) -> None:
    rows = compared(measured.store, cwd, "a=mine/xs", "b=mine/l", "ties=mid")
    (whole,) = [row for row in of_kind(rows, "part") if row["by"] == "text"]
    runs = runs_by_size(measured.store)
    a, b = (columns_of(measured.store / "runs" / runs[size]["run_id"], "tokens") for size in ("xs", "l"))
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
    half = student_t.ppf(0.975, len(D) - 1) * math.sqrt(len(D) / (len(D) - 1) * sum(r * r for r in residual)) / n_bytes
    assert [whole["change_lo"], whole["change_hi"]] == pytest.approx(
        [whole["change"] - half, whole["change"] + half], rel=1e-6
    )
    for by in ("kind", "place", "document"):
        parts = [row for row in of_kind(rows, "part") if row["by"] == by]
        assert sum(row["n_bytes"] for row in parts) == n_bytes
        assert sum(row["share"] for row in parts) == pytest.approx(1, rel=1e-9)
        assert sum(row["change"] * row["n_bytes"] for row in parts) == pytest.approx(
            whole["change"] * n_bytes, rel=1e-9
        )


def test_hits_and_moves_are_counted(measured: Measured, cwd: Path) -> None:
    rows = compared(measured.store, cwd, "a=mine/xs", "b=mine/l", "k=[1,10]")
    runs = runs_by_size(measured.store)
    a, b = (columns_of(measured.store / "runs" / runs[size]["run_id"], "tokens") for size in ("xs", "l"))
    rank_a, rank_b = (run["greater"] + run["ties"] + 1 for run in (a, b))
    for row, k in zip(of_kind(rows, "hits"), (1, 10), strict=True):
        hit_a, hit_b = rank_a <= k, rank_b <= k
        assert row["k"] == k
        assert row["gained"] == pytest.approx((hit_b & ~hit_a).mean())
        assert row["lost"] == pytest.approx((hit_a & ~hit_b).mean())
        assert row["same"] == pytest.approx((hit_a == hit_b).mean())
        assert row["rbp_b"] - row["rbp_a"] == pytest.approx(row["gained"] - row["lost"], abs=1e-12)
    (moves,) = of_kind(rows, "moves")
    assert [moves["better"], moves["worse"]] == pytest.approx([(rank_b < rank_a).mean(), (rank_b > rank_a).mean()])


def test_swapping_the_models_flips_signs_and_nothing_else(measured: Measured, cwd: Path) -> None:
    there, back = (compared(measured.store, cwd, *names) for names in (("mine/xs", "mine/l"), ("mine/l", "mine/xs")))
    assert len(there) == len(back)
    for one, other in zip(there, back, strict=True):
        if one["kind"] == "part":
            assert [one["change"], one["share"], one["name"]] == [-other["change"], other["share"], other["name"]]
            assert [one["bits_a"], one["bits_b"]] == [other["bits_b"], other["bits_a"]]
            if one["change_lo"] is not None:
                assert [one["change_lo"], one["change_hi"]] == [-other["change_hi"], -other["change_lo"]]
        if one["kind"] == "hits":
            assert [one["gained"], one["lost_hi"]] == [other["lost"], other["gained_hi"]]
        if one["kind"] == "passage":
            assert [one["text"], one["change_bits"]] == [other["text"], -other["change_bits"]]


def test_a_slice_holds_what_its_condition_says(measured: Measured, cwd: Path) -> None:
    rows = compared(measured.store, cwd, "mine/xs", "mine/l", "slices={lost: 'rank_a = 1 and rank_b > 1'}")
    (part,) = [row for row in of_kind(rows, "part") if row["by"] == "slice"]
    runs = runs_by_size(measured.store)
    a, b = (columns_of(measured.store / "runs" / runs[size]["run_id"], "tokens") for size in ("xs", "l"))
    lost = (a["greater"] + a["ties"] == 0) & (b["greater"] + b["ties"] > 0)
    assert part["n_bytes"] == a["n_bytes"][lost].sum() > 0
    assert part["change"] > 0


# -------------------------------------------------------------------------------------------------- two tokenizers


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 and an OPT, whose tokenizers differ and begin in different ways, on one text."""
    folder, cwd = tmp_path_factory.mktemp("mixed"), tmp_path_factory.mktemp("cwd")
    text = write_jsonl(folder / "text.jsonl", *(text for text in TINY_TEXT if len(text) > 5))
    for arch in ("gpt2", "opt"):
        build_checkpoint(arch, folder / arch)
        words = ("model=hub", f"model.id={folder / arch}", "dataset=file", f"dataset.path={text}", "dataset.name=tiny")
        here("measure", *words, "--store", folder / "store", cwd=cwd, check=0)
    return folder / "store"


def test_models_with_different_tokenizers_meet_at_their_bytes(mixed: Path, cwd: Path) -> None:
    (run_a, run_b) = (
        (json.loads(path.read_text()), path.parent) for path in sorted(mixed.glob("runs/*/manifest.json"))
    )
    ids = [run[0]["run_id"] for run in (run_a, run_b)]
    rows = compared(mixed, cwd, *ids)
    (whole,) = [row for row in of_kind(rows, "part") if row["by"] == "text"]
    of = []
    for _, folder in (run_a, run_b):
        t = columns_of(folder, "tokens")
        of.append(byte_nats(Tokens(t["doc_id"], t["first_byte"], t["n_bytes"], -t["logprob"].astype(float))))
    both = of[0].keys() & of[1].keys()
    assert whole["n_bytes"] == len(both)
    assert 0 < len(both) < max(map(len, of)), "one of them predicts the first token of a document, the other does not"
    bits = [math.fsum(nats[place] for place in both) / math.log(2) / len(both) for nats in of]
    assert [whole["bits_a"], whole["bits_b"]] == pytest.approx(bits, rel=1e-9)
    assert of_kind(rows, "hits") + of_kind(rows, "moves") == []
    assert {row["name"] for row in rows if row.get("by") == "kind"} >= {"word", "white space", "punctuation"}


def test_a_run_without_bytes_is_compared_by_tokens_or_not_at_all(measured: Measured, mixed: Path, cwd: Path) -> None:
    old = without_bytes(measured.store, cwd.parent / "old")
    rows, now = (compared(store, cwd, "mine/xs", "mine/l") for store in (old, measured.store))
    assert {row["unit"] for row in rows} == {"token"}
    (whole, known) = (of_kind(each, "part")[0] for each in (rows, now))
    assert whole["change"] * whole["n_tokens"] == pytest.approx(known["change"] * known["n_bytes"], rel=1e-9)
    assert [row["gained"] for row in of_kind(rows, "hits")] == [row["gained"] for row in of_kind(now, "hits")]
    older = without_bytes(mixed, cwd.parent / "older")
    names = sorted(path.name for path in older.glob("runs/*"))
    refused = here("compare", *names, "--store", older, cwd=cwd, check=2)
    assert "before tokens knew their bytes" in refused.stderr


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "a= is missing"),
        (("a=mine/xs",), "b= is missing"),
        (("mine/xs",), "compare takes 2 words, got 1"),
        (("a=mine/xs", "b=mine"), "b=mine does not name a model"),
        (("a=mine/xs", "b=12e45"), "was read as a number"),
        (("a=mine/xs", "b=mine/huge"), "b=mine/huge was not measured"),
        (("mine/xs", "mine/l", "slices={x: 'rank_c > 1'}"), "slices.x='rank_c > 1' is not a valid condition"),
        (("mine/xs", "mine/l", "slices={x: 'doc_id < 0'}"), "matches nothing"),
    ],
)
def test_what_cannot_be_compared_is_said(measured: Measured, cwd: Path, words: tuple[str, ...], says: str) -> None:
    refused = here("compare", *words, "--store", measured.store, cwd=cwd, check=2)
    assert says in refused.stderr
    assert refused.stdout == ""
