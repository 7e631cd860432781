"""Answers how two models differ on every text that both were measured on: its parts, hits, and single places."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.request import Request
from rbpx.display.section import interval
from rbpx.display.view import Table, View, share, text, whole, with_ends, written
from rbpx.display.vocabulary import shortened, signed
from rbpx.errors import RbpxError
from rbpx.questions.compare.meeting import SPAN, Stretches, Tokens, meet, telling_spans
from rbpx.questions.compare.parts import KINDS, compared, kind_of, part_of, shares
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group, Run
from rbpx.runs.select.side import Side, name_of, runs_by_text
from rbpx.runs.select.ways import in_size
from rbpx.store.sql import SqlLimits, ask, ask_where
from rbpx.store.store import Record
from rbpx.ties import Ties
from rbpx.typed import typed

_K: Final = (1, 10, 100)
_LISTED: Final = 5  # documents and passages of each text in tables
_PLACES: Final = (0, 64, 256, 1024, 4096, 16384)  # bytes (or tokens) from the beginning of a document
_WAYS: Final = ("better", "equal", "worse")  # which way the rank of a token moves from a to b
_OF_TOKENS: Final = (
    " An earlier version measured one of the runs and kept no bytes; remove it with `store rm` and measure it again."
)

_Chosen = npt.NDArray[np.bool_]
_Words = Sequence[str | None]
"""The text of each stretch; None where the store does not have it."""


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Compare the two sides on every text that both were measured on; no law is stored.

    Raises:
        RbpxError: a side is not named, means several runs on one text, or no text was measured on both sides.
    """
    sides = Side.read("a", request.a), Side.read("b", request.b)
    about, found = list[Group](), list[list[Record]]()
    for members in runs_by_text(groups):
        a, b = (side.one_of(run for _, run in members) for side in sides)
        if a is not None and b is not None:
            about.append(next(group for group, run in members if run is a))
            found.append(_compare(connection, about[-1].ties, a, b, request))
    if not found:
        raise RbpxError(_nothing(groups, sides))
    tables, sentences = chain.from_iterable(map(_tables, found)), chain.from_iterable(map(_sentences, found))
    return [Result(about, [*chain.from_iterable(found)], [*tables], [*sentences])]


def _nothing(groups: Sequence[Group], sides: tuple[Side, Side]) -> str:
    """Why there is nothing to compare: a side that was not measured, or no text in common."""
    runs = [run for group in groups for run in group.runs]
    for side in sides:
        if not any(side.means(run) for run in runs):
            known = ", ".join(list(dict.fromkeys(map(name_of, runs)))[:8])
            return f"{side.key}={side.name} was not measured on the texts asked for; the store has: {known}"
    texts = [sorted({run.dataset for run in runs if side.means(run)}) for side in sides]
    a, b = (f"{side.name} on {', '.join(names)}" for side, names in zip(sides, texts, strict=True))
    return f"a and b were not measured on the same text ({a}; {b}); measure both on one, under one protocol"


def _compare(connection: duckdb.DuckDBPyConnection, ties: Ties, a: Run, b: Run, request: Request) -> list[Record]:
    """Rows of two runs on one text, told apart by `kind`: part, hits, moves, passage.

    Of the parts the whole text is first, then kinds, places, slices and documents; the document that makes most of the
    difference is the first of them.
    """
    sides = [ask(connection, "compared_tokens", run_id=run.run_id, ties=ties.value) for run in (a, b)]
    unit, met = _meet(sides, (a, b))
    words = list(_words(met, sides))
    names: Record = {"a": name_of(a), "b": name_of(b), "run_id_a": a.run_id, "run_id_b": b.run_id}
    names |= {name: getattr(a, name) for name in ("dataset", "text_hash", "protocol", "window", "stride")}
    names |= {"ties": ties.value, "unit": unit}
    sources = dict(zip(*ask(connection, "compared_documents", run_id=a.run_id).to_pydict().values(), strict=True))
    whole_3D, doc_ids = met.sums(), met.documents[0].tolist()
    parts = [("text", a.dataset, whole_3D)]
    parts += [(by, name, met.sums(chosen_M)) for by, name, chosen_M in _cuts(met, words)]
    parts += [("slice", *of) for of in _slices(connection, met, words, sides, request)]
    for at in np.lexsort((doc_ids, -np.abs(whole_3D[1] - whole_3D[0]))):  # a single document has no interval
        parts.append(("document", f"{doc_ids[at]} {sources.get(doc_ids[at], '')}".strip(), whole_3D[:, at : at + 1]))
    rows: list[Record] = [
        {"kind": "part", "by": by, "name": name, **row}
        for by, name, part_3D in parts
        if (row := compared(part_3D, whole_3D, unit)) is not None
    ]
    if _is_one_tokenizer(sides):
        rows += _hits(sides, request, min(a.vocab_size or 0, b.vocab_size or 0))
    rows += _passages(met, words, sources, request.top)
    return [{"kind": row["kind"], **names, **row} for row in rows]


def _meet(sides: Sequence[pa.Table], runs: Sequence[Run]) -> tuple[str, Stretches]:
    """The text that both scored, and its unit: byte, or token where a run of an earlier version knows no bytes.

    Raises:
        RbpxError: a run does not know its bytes, and the tokenizers differ.
    """
    old = next((run for run, rows in zip(runs, sides, strict=True) if rows["first_byte"].null_count), None)
    if old is not None and not _is_one_tokenizer(sides):
        raise RbpxError(
            f"run {old.run_id} ({name_of(old)} on {old.dataset}) was measured before tokens knew their bytes, so it "
            "cannot be compared across tokenizers; remove it with `store rm` and measure it again"
        )
    met = meet(*(_tokens(rows, old is None) for rows in sides))
    return "byte" if old is None else "token", met


def _tokens(rows: pa.Table, know_bytes: bool) -> Tokens:
    doc, nats = rows["doc_id"].to_numpy().astype(np.int64), rows["nats"].to_numpy()
    begin = rows["first_byte" if know_bytes else "position"].to_numpy().astype(np.int64)
    return Tokens(doc, begin, rows["n_bytes"].to_numpy() if know_bytes else np.ones(len(doc), np.int64), nats)


def _is_one_tokenizer(sides: Sequence[pa.Table]) -> bool:
    return len({rows["tokenizer_hash"][0].as_py() for rows in sides}) == 1


def _words(met: Stretches, sides: Sequence[pa.Table]) -> Iterator[str | None]:
    """The text of each stretch, from the first side that knows which bytes its token stands for."""
    known = []
    for rows, of_M in zip(sides, (met.a_M, met.b_M), strict=True):
        n_bytes, first = (rows[name].fill_null(-1).to_numpy()[of_M] for name in ("n_bytes", "first_byte"))
        known.append((rows["text"].take(pa.array(of_M)).to_pylist(), n_bytes.tolist(), (met.begin_M - first).tolist()))
    for m, length in enumerate(met.length_M.tolist()):
        parts = (part_of(words[m], n_bytes[m], begin[m], length) for words, n_bytes, begin in known)
        yield next((part for part in parts if part is not None), None)


def _cuts(met: Stretches, words: _Words) -> Iterator[tuple[str, str, _Chosen]]:
    """The stretches of each kind, and of each place; none of some."""
    kind_M = np.array([kind_of(word) for word in words])
    yield from (("kind", kind, kind_M == kind) for kind in KINDS)
    place_M = np.searchsorted(_PLACES, met.begin_M, side="right") - 1
    for at, (low, high) in enumerate(zip_longest(_PLACES, _PLACES[1:])):
        yield "place", f"{low}..{'' if high is None else high - 1}", place_M == at


def _slices(
    connection: duckdb.DuckDBPyConnection, met: Stretches, words: _Words, sides: Sequence[pa.Table], request: Request
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """The sums over the stretches that meet each of the user's conditions.

    Raises:
        RbpxError: a condition is wrong, or nothing meets it.
    """
    limits = SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
    rows = _stretches(met, words, sides) if request.conditions else None
    for name, where in request.conditions.items():
        chosen = ask_where(connection, rows, f"slices.{name}", where, "chosen_rows", limits)
        if not chosen.num_rows:
            raise RbpxError(f"slices.{name}={where!r} matches nothing that both models scored; change it")
        yield name, met.sums(chosen["row"].to_numpy())


def _stretches(met: Stretches, words: _Words, sides: Sequence[pa.Table]) -> pa.Table:
    """The stretches as a table that conditions are asked of."""
    columns: dict[str, Any] = {"doc_id": met.doc_M, "first_byte": met.begin_M, "n_bytes": met.length_M}
    columns |= {"text": pa.array(words, pa.string()), "nats_a": met.nats_a_M, "nats_b": met.nats_b_M}
    if _is_one_tokenizer(sides):
        a, b = sides
        columns |= {name: a[name].to_numpy()[met.a_M] for name in ("position", "token_id")}
        columns |= {"rank_a": a["rank"].to_numpy()[met.a_M], "rank_b": b["rank"].to_numpy()[met.b_M]}
    return pa.table(columns | {"row": np.arange(len(met.doc_M))})


def _hits(sides: Sequence[pa.Table], request: Request, vocab_size: int) -> Iterator[Record]:
    """Of the tokens that both scored, hits of each at each k, gained (of b alone), lost and alike; how ranks move."""
    a, b = (rows["doc_id"].to_numpy().astype(np.int64) << 32 | rows["position"].to_numpy() for rows in sides)
    key, *at = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    a_N, b_N = (rows["rank"].to_numpy()[at_N] for rows, at_N in zip(sides, at, strict=True))
    for k in request.k.grid(vocab_size, _K):
        a, b = a_N <= k, b_N <= k
        yield {"kind": "hits", "k": k, **shares(key >> 32, rbp_a=a, rbp_b=b, gained=b & ~a, lost=a & ~b, same=a == b)}
    yield {"kind": "moves", **shares(key >> 32, better=b_N < a_N, equal=b_N == a_N, worse=b_N > a_N)}


def _passages(met: Stretches, words: _Words, sources: dict[int, str], top: int) -> Iterator[Record]:
    """The `top` places where the two models are furthest apart; a repeated text is shown once."""
    shown: set[str] = set()
    for first, nats in telling_spans(met):
        text = "".join("\N{REPLACEMENT CHARACTER}" if word is None else word for word in words[first : first + SPAN])
        if text not in shown:
            shown.add(text)
            doc_id, place = int(met.doc_M[first]), int(met.begin_M[first])
            row: Record = {"doc_id": doc_id, "source_id": sources.get(doc_id, ""), "first_byte": place, "text": text}
            yield {"kind": "passage", **row, "change_bits": float(nats / np.log(2))}
        if len(shown) == top:
            return


def _tables(rows: Sequence[Record]) -> Iterator[Table]:
    """The parts of a text, hits where both models have one tokenizer, and passages."""
    names, unit = rows[0], rows[0]["unit"]
    about = f"{names['dataset']}: a = {names['a']}, b = {names['b']}"
    parts, hits, passages = ([row for row in rows if row["kind"] == kind] for kind in ("part", "hits", "passage"))
    note = (
        "Only text that both scored counts; the nats of a token are spread over its bytes. Length and place are in "
        f"{unit}s, places from the beginning of a document. 95 %: over documents, no interval for a single document; "
        f"{typed(format='json')} has all documents.{_OF_TOKENS if unit == 'token' else ''}"
    )
    shown = len(parts) - sum(row["by"] == "document" for row in parts) + _LISTED
    yield PARTS.table(f"Bits per {unit}", parts[:shown], about, note=note)
    note = f"RBP, gained, lost and same are shares of the tokens; ties {names['ties']}."
    yield HITS.table("Hits", hits, about, note=note)
    yield PASSAGES.table("Where they differ most", passages[:_LISTED], about)


def _sentences(rows: Sequence[Record]) -> Iterator[str]:
    """Which way ranks move on a text."""
    for row in rows:
        if row["kind"] == "moves":
            said = [f"{way} {interval(*(row[f'{way}{end}'] for end in ('', '_lo', '_hi')))}" for way in _WAYS]
            yield f"Ranks on {row['dataset']} from a to b, as shares of the tokens: {', '.join(said)}."


def _part(row: Record) -> str:
    of = {"text": "", "kind": "", "document": "doc "}.get(row["by"], f"{row['by']} ")
    return shortened(f"{of}{row['name']}", 24)


PARTS: Final = View[Record](
    "parts",
    text("part", "name", _part),
    whole("length", "n_units", lambda row: row[f"n_{row['unit']}s"]),
    [with_ends(side, f"bits_{side}", ends_spare=3) for side in "ab"],
    with_ends("b − a", "change", how=signed, means="below 0, b predicts better"),
    share("share", "share", means="part of the whole difference", spare=1),
    whole("documents", "documents", spare=2),
)
HITS: Final = View[Record](
    "hits",
    whole("k", "k"),
    [with_ends(heading, key, ends_spare=2) for heading, key in (("RBP of a", "rbp_a"), ("of b", "rbp_b"))],
    [with_ends(way, way) for way in ("gained", "lost")],
    with_ends("same", "same", means="tokens that both hit or both miss", ends_spare=1),
)
PASSAGES: Final = View[Record](
    "passages",
    text("text", "text", lambda row: shortened(repr(row["text"])[1:-1], 46)),
    written("b − a, bits", "change_bits", how=lambda bits: signed(bits, 1)),
    whole("document", "doc_id"),
    whole("place", "first_byte", spare=1),
)
QUESTION = Question(answer, select=partial(in_size, along=False))
