"""Answers `compare`."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import listed, shortened, whole
from rbpx.errors import RbpxError
from rbpx.laws.numeric import Floats
from rbpx.questions.compare import CompareKeys
from rbpx.questions.compare.meeting import RunTokens, Stretches, meet
from rbpx.questions.compare.parts import KINDS, compare_part, kind_of, part_of, shares
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.run import Run
from rbpx.runs.select.groups import select
from rbpx.runs.select.side import Side, name_of, runs_by_text
from rbpx.store.columns import numbers
from rbpx.store.sql import SqlLimits, ask, ask_where
from rbpx.store.store import Record
from rbpx.ties import Ties

_K: Final = (1, 10, 100)
_NAMED: Final = 4  # texts in the first sentence
_LISTED: Final = 5  # documents of each text in the table
_PLACES: Final = (0, 64, 256, 1024, 4096, 16384)  # bytes from the beginning of a document

_Words = Sequence[str | None]
"""The text of each stretch; None where the store does not have it."""


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: CompareKeys) -> list[Result]:
    """Compares two models on every text that both were measured on.

    Raises:
        RbpxError: a side is missing or ambiguous on a text, or no text was measured on both sides.
    """
    sides = Side.read("a", request.a), Side.read("b", request.b)
    about, found = list[Group](), list[list[Record]]()
    for members in runs_by_text(groups):
        a, b = (side.one_of(run for _, run in members) for side in sides)
        if a is not None and b is not None:
            about.append(next(group for group, run in members if run is a))
            found.append(_compare(connection, about[-1].ties, a, b, request))
    if not found:
        raise RbpxError(_why_empty(groups, sides))
    tables = [*chain.from_iterable(_tables(rows, request.k.by_number) for rows in found)]
    sentences = [_sentence(found), *chain.from_iterable(map(_moves, found))]
    return [Result(about, [*chain.from_iterable(found)], tables, sentences)]


def _why_empty(groups: Sequence[Group], sides: tuple[Side, Side]) -> str:
    runs = [run for group in groups for run in group.runs]
    for side in sides:
        if not any(side.means(run) for run in runs):
            known = ", ".join(list(dict.fromkeys(map(name_of, runs)))[:8])
            return f"{side.key}={side.name} was not measured on the texts asked for; the store has: {known}"
    return "a and b were not measured on the same text; measure both on one, under one protocol"


def _compare(connection: duckdb.DuckDBPyConnection, ties: Ties, a: Run, b: Run, request: CompareKeys) -> list[Record]:
    """Rows of two runs on one text, told apart by `kind`: part, hits, moves; raises RbpxError without byte positions.

    Parts are the whole text, kinds, places, slices, and documents by their share of the difference.
    """
    sides = [ask(connection, "compared_tokens", run_id=run.run_id, ties=ties.value) for run in (a, b)]
    for run, tokens in zip((a, b), sides, strict=True):
        if tokens["first_byte"].null_count:
            raise RbpxError(
                f"run {run.run_id} ({name_of(run)} on {run.dataset}) was measured before tokens knew their bytes; "
                "remove it with `store rm` and measure it again"
            )
    met = meet(*(RunTokens(*(numbers(rows[name]) for name in _TOKENS)) for rows in sides))
    words, whole_3D, doc_ids = list(_words(met, sides)), met.sums(), np.unique(met.doc_M).tolist()
    names: Record = {"a": name_of(a), "b": name_of(b), "run_id_a": a.run_id, "run_id_b": b.run_id}
    names |= {name: getattr(a, name) for name in ("dataset", "text_hash", "protocol", "window", "stride")}
    names |= {"ties": ties.value, "unit": "byte"}
    sources = dict(zip(*ask(connection, "compared_documents", run_id=a.run_id).to_pydict().values(), strict=True))
    parts = [("text", a.dataset, whole_3D), *_cuts(met, words), *_slices(connection, met, words, sides, request)]
    for at in np.lexsort((doc_ids, -np.abs(whole_3D[1] - whole_3D[0]))):  # a single document has no interval
        parts.append(("document", f"{doc_ids[at]} {sources.get(doc_ids[at], '')}".strip(), whole_3D[:, at : at + 1]))
    rows: list[Record] = [
        {"kind": "part", "by": by, "name": name, **row}
        for by, name, part_3D in parts
        if (row := compare_part(part_3D, whole_3D)) is not None
    ]
    if _is_one_tokenizer(sides):
        rows += _hits(sides, request, min(a.vocab_size or 0, b.vocab_size or 0))
    return [{"kind": row["kind"], **names, **row} for row in rows]


_TOKENS: Final = ("doc_id", "first_byte", "n_bytes", "nats")


def _is_one_tokenizer(sides: Sequence[pa.Table]) -> bool:
    return len({rows["tokenizer_hash"][0].as_py() for rows in sides}) == 1


def _words(met: Stretches, sides: Sequence[pa.Table]) -> Iterator[str | None]:
    known = []
    for rows, of_M in zip(sides, (met.a_M, met.b_M), strict=True):
        n_bytes, first = (numbers(rows[name])[of_M] for name in ("n_bytes", "first_byte"))
        known.append(zip(rows["text"].take(pa.array(of_M)).to_pylist(), n_bytes, met.begin_M - first, strict=True))
    for length, *of in zip(met.length_M, *known, strict=True):
        parts = (part_of(text, n_bytes, begin, length) for text, n_bytes, begin in of)
        yield next((part for part in parts if part is not None), None)


def _cuts(met: Stretches, words: _Words) -> Iterator[tuple[str, str, Floats]]:
    kind_M = np.array([kind_of(word) for word in words])
    yield from (("kind", kind, met.sums(kind_M == kind)) for kind in KINDS)
    place_M = np.searchsorted(_PLACES, met.begin_M, side="right") - 1
    for at, (low, high) in enumerate(zip_longest(_PLACES, _PLACES[1:])):
        yield "place", f"{low}..{'' if high is None else high - 1}", met.sums(place_M == at)


def _slices(
    connection: duckdb.DuckDBPyConnection,
    met: Stretches,
    words: _Words,
    sides: Sequence[pa.Table],
    request: CompareKeys,
) -> Iterator[tuple[str, str, Floats]]:
    limits, (a, b) = SqlLimits(request.sql_timeout_s, request.sql_memory_mib), sides
    columns: dict[str, Any] = {"doc_id": met.doc_M, "first_byte": met.begin_M, "n_bytes": met.length_M}
    columns |= {"text": pa.array(words, pa.string()), "nats_a": met.nats_a_M, "nats_b": met.nats_b_M}
    if _is_one_tokenizer(sides):
        columns |= {name: numbers(a[name])[met.a_M] for name in ("position", "token_id")}
        columns |= {"rank_a": numbers(a["rank"])[met.a_M], "rank_b": numbers(b["rank"])[met.b_M]}
    rows = pa.table(columns | {"row": np.arange(len(met.doc_M))})
    for name, where in request.conditions.items():
        chosen = ask_where(connection, rows, f"slices.{name}", where, "chosen_rows", limits)
        if not chosen.num_rows:
            raise RbpxError(f"slices.{name}={where!r} matches nothing that both models scored; change it")
        yield "slice", name, met.sums(numbers(chosen["row"]))


def _hits(sides: Sequence[pa.Table], request: CompareKeys, vocab_size: int) -> Iterator[Record]:
    """Shares of the common tokens at each k: hits, gained (by b), lost and alike; and how ranks move."""
    a, b = (numbers(rows["doc_id"]).astype(np.int64) << 32 | numbers(rows["position"]) for rows in sides)
    key, *at = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    a_N, b_N = (numbers(rows["rank"])[at_N] for rows, at_N in zip(sides, at, strict=True))
    for k in request.k.grid(vocab_size, _K):
        a, b = a_N <= k, b_N <= k
        yield {"kind": "hits", "k": k, **shares(key >> 32, rbp_a=a, rbp_b=b, gained=b & ~a, lost=a & ~b, same=a == b)}
    yield {"kind": "moves", **shares(key >> 32, better=b_N < a_N, equal=b_N == a_N, worse=b_N > a_N)}


def _tables(rows: Sequence[Record], asks_k: bool) -> Iterator[Table]:
    about, ties = "{dataset}: a = {a}, b = {b}".format_map(rows[0]), rows[0]["ties"]
    parts, hits = ([row for row in rows if row["kind"] == kind] for kind in ("part", "hits"))
    shown = len(parts) - sum(row["by"] == "document" for row in parts) + _LISTED
    in_brief = ("text", "kind", "slice")
    rows = [row | {"name": _part(row)} for row in parts[:shown]]
    yield PARTS.of("Bits per byte", rows, about, brief=[row["by"] in in_brief for row in rows])
    yield HITS.of(f"Hits, ties {ties}", hits, about, brief=asks_k)


def _sentence(texts: Sequence[Sequence[Record]]) -> str:
    wholes = [rows[0] for rows in texts]  # the whole text is first
    a, b = (wholes[0][side] for side in "ab")
    ends = [[row["change"] if row[key] is None else row[key] for key in ("change_lo", "change_hi")] for row in wholes]
    verdict = f"Which of {a} and {b} predicts better depends on the text"
    if all(lo <= 0 <= hi for lo, hi in ends):
        verdict = f"{a} and {b} cannot be told apart"
    elif all(hi < 0 for _, hi in ends) or all(lo > 0 for lo, _ in ends):
        verdict = f"{b} predicts {'better' if ends[0][1] < 0 else 'worse'} than {a}"
    changes = [f"{interval_of(estimate_in(row, 'change'))} on {row['dataset']}" for row in wholes]
    return f"{verdict}: bits per byte of {b} minus those of {a} are {listed(changes, _NAMED)}."


def _moves(rows: Sequence[Record]) -> Iterator[str]:
    for row in rows:
        if row["kind"] == "moves":
            said = [f"{way} {interval_of(estimate_in(row, way))}" for way in ("better", "equal", "worse")]
            yield f"Ranks on {row['dataset']} from a to b, as shares of the tokens: {', '.join(said)}."


def _part(row: Record) -> str:
    of = {"text": "", "kind": "", "document": "doc "}.get(row["by"], f"{row['by']} ")
    return shortened(f"{of}{row['name']}", 24)


PARTS: Final = table_of(
    "parts", ("part", "name"), ("length", "n_bytes", whole), *interval("a", "bits_a"), *interval("b", "bits_b"),
    *interval("b − a", "change", "+.4f", "below 0, b predicts better"),
    ("of b − a", "share", ".1%"), ("documents", "documents", whole),
    first="name n_bytes bits_a bits_b change, share, documents, bits_a_lo bits_b_lo",
)  # fmt: skip
HITS: Final = table_of(
    "hits", ("k", "k", whole), *interval("RBP of a", "rbp_a"), *interval("of b", "rbp_b"),
    *interval("gained", "gained"), *interval("lost", "lost"),
    *interval("same", "same", ".4f", "tokens that both hit or both miss"),
    first="k rbp_a rbp_b gained lost same, same_lo, rbp_a_lo rbp_b_lo",
)  # fmt: skip
QUESTION = Question(answer, select=partial(select, by=By.size))
