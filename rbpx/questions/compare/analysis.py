"""Two models on one text (verb compare): compares them on every text that both were measured on, and on its parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.laws.numeric import Floats
from rbpx.questions.compare.meeting import SPAN, Stretches, Tokens, meet, telling_spans
from rbpx.questions.compare.parts import KINDS, Part, compared, kind_of, part_of, shares
from rbpx.runs.group import Group, Run
from rbpx.runs.select.side import Side, name_of, runs_by_text
from rbpx.store.sql import SqlLimits, ask, ask_where
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
PLACES: Final = (0, 64, 256, 1024, 4096, 16384)  # bytes (or tokens) from the beginning of a document
COLUMNS: Final = "doc_id, first_byte, n_bytes, text, nats_a, nats_b"
TOKEN_COLUMNS: Final = f"{COLUMNS}, position, token_id, rank_a, rank_b"

Hits = tuple[int, dict[str, Estimate]]
"""A k, and shares of the tokens: hits of a, of b, gained (of b alone), lost, and those that both hit or both miss."""


@dataclass(frozen=True)
class Passage:
    """A place where the two models are far apart, with its text as far as the store has it."""

    doc_id: int
    source_id: str
    first_byte: int
    text: str
    change_bits: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs on one text.

    Attributes:
        group: of side a.
        a: the run that the other is compared with.
        b: the other run.
        unit: byte, or token where a run of an earlier version does not know its bytes.
        parts: the whole text first, then kinds, places, slices and documents.
        passages: furthest apart first.
        hits: by k; empty where the tokenizers differ.
        moves: which way ranks move from a to b, shares of the tokens; empty where the tokenizers differ.
    """

    group: Group
    a: Run
    b: Run
    unit: str
    parts: tuple[Part, ...]
    passages: tuple[Passage, ...]
    hits: tuple[Hits, ...]
    moves: dict[str, Estimate]


@dataclass(frozen=True, eq=False)
class _Met:
    """Two runs on one text, side by side.

    Attributes:
        rows: the scored tokens of each (query `compared_tokens`).
        text: the stretches that both scored.
        words_M: the text of each stretch; None where the store does not have it.
        doc_ids: the D documents.
        document_M: the place of each stretch's document among them.
    """

    rows: tuple[pa.Table, pa.Table]
    text: Stretches
    words_M: list[str | None]
    doc_ids: npt.NDArray[np.int64]
    document_M: npt.NDArray[np.intp]

    def sums(self, chosen_M: npt.NDArray[np.bool_] | slice = np.s_[:]) -> Floats:
        """Nats of a, nats of b and bytes by document, of all stretches or of the chosen ones: [3, D]."""
        columns = self.text.nats_a_M, self.text.nats_b_M, self.text.length_M
        doc, D = self.document_M[chosen_M], len(self.doc_ids)
        return np.stack([np.bincount(doc, each[chosen_M], D).astype(np.float64) for each in columns])


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Comparison]:
    """Compare the two sides on every text that both were measured on.

    Raises:
        RbpxError: a side is not named, means several runs on one text, or no text was measured on both sides.
    """
    sides = Side.read("a", request.a), Side.read("b", request.b)
    found = []
    for members in runs_by_text(groups):
        a, b = (side.one_of(run for _, run in members) for side in sides)
        if a is not None and b is not None:
            group = next(group for group, run in members if run is a)
            found.append(_compare(connection, group, a, b, request))
    if not found:
        raise RbpxError(_nothing(groups, sides))
    return found


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


def _compare(connection: duckdb.DuckDBPyConnection, group: Group, a: Run, b: Run, request: Request) -> Comparison:
    rows_a, rows_b = (ask(connection, "compared_tokens", run_id=run.run_id, ties=group.ties.value) for run in (a, b))
    unit, met = _meet(rows_a, rows_b, a, b)
    whole_3D = met.sums()
    sliced = dict(_slices(connection, met, request))
    source_ids = dict(zip(*ask(connection, "compared_documents", run_id=a.run_id).to_pydict().values(), strict=True))
    parts = [compared("text", a.dataset, whole_3D, whole_3D)]
    for by, of in (("kind", _kinds(met)), ("place", _places(met)), ("slice", sliced)):
        parts += [compared(by, name, met.sums(chosen_M), whole_3D) for name, chosen_M in of.items()]
    # The document that makes most of the difference comes first; a single document has no interval.
    for at in np.lexsort((met.doc_ids, -np.abs(whole_3D[1] - whole_3D[0]))):
        doc_id = int(met.doc_ids[at])
        name = f"{doc_id} {source_ids.get(doc_id, '')}".strip()
        parts.append(compared("document", name, whole_3D[:, at : at + 1], whole_3D))
    known, passages = filter(None, parts), _passages(met, source_ids, request.top)
    hits, moves = _hits(met, request, min(a.vocab_size or 0, b.vocab_size or 0))
    return Comparison(group, a, b, unit, tuple(known), tuple(passages), hits, moves)


def _meet(rows_a: pa.Table, rows_b: pa.Table, a: Run, b: Run) -> tuple[str, _Met]:
    """The unit of the text that both scored, and the two side by side.

    Raises:
        RbpxError: a run does not know its bytes, and the tokenizers differ; or no text was scored by both.
    """
    old = next((run for run, rows in ((a, rows_a), (b, rows_b)) if rows["first_byte"].null_count), None)
    if old is not None and not _is_one_tokenizer(rows_a, rows_b):
        raise RbpxError(
            f"run {old.run_id} ({name_of(old)} on {old.dataset}) was measured before tokens knew their bytes, so it "
            "cannot be compared across tokenizers; remove it with `store rm` and measure it again"
        )
    unit = "byte" if old is None else "token"
    text = meet(*(_tokens(rows, unit) for rows in (rows_a, rows_b)))
    if not len(text.doc_M):
        raise RbpxError(f"{name_of(a)} and {name_of(b)} scored no byte of {a.dataset} in common; read it with a window")
    doc_ids, document_M = np.unique(text.doc_M, return_inverse=True)
    return unit, _Met((rows_a, rows_b), text, list(_words(text, rows_a, rows_b)), doc_ids, document_M)


def _tokens(rows: pa.Table, unit: str) -> Tokens:
    doc, nats = rows["doc_id"].to_numpy().astype(np.int64), rows["nats"].to_numpy()
    if unit == "token":
        return Tokens(doc, rows["position"].to_numpy().astype(np.int64), np.ones(len(doc), np.int64), nats)
    return Tokens(doc, rows["first_byte"].to_numpy(), rows["n_bytes"].to_numpy(), nats)


def _is_one_tokenizer(*sides: pa.Table) -> bool:
    return len({rows["tokenizer_hash"][0].as_py() for rows in sides}) == 1


def _words(text: Stretches, rows_a: pa.Table, rows_b: pa.Table) -> Iterator[str | None]:
    """The text of each stretch, from the first side that knows which bytes its token stands for."""
    known = []
    for rows, of_M in ((rows_a, text.a_M), (rows_b, text.b_M)):
        n_bytes, first = (rows[name].fill_null(-1).to_numpy()[of_M] for name in ("n_bytes", "first_byte"))
        known.append((rows["text"].take(pa.array(of_M)).to_pylist(), n_bytes.tolist(), (text.begin_M - first).tolist()))
    for m, length in enumerate(text.length_M.tolist()):
        parts = (part_of(words[m], n_bytes[m], begin[m], length) for words, n_bytes, begin in known)
        yield next((part for part in parts if part is not None), None)


def _kinds(met: _Met) -> dict[str, npt.NDArray[np.bool_]]:
    kind_M = np.array([kind_of(word) for word in met.words_M])
    return {kind: kind_M == kind for kind in KINDS if (kind_M == kind).any()}


def _places(met: _Met) -> dict[str, npt.NDArray[np.bool_]]:
    bucket_M = np.searchsorted(PLACES, met.text.begin_M, side="right") - 1
    names = [f"{low}..{high - 1}" for low, high in pairwise(PLACES)] + [f"{PLACES[-1]}.."]
    return {names[at]: bucket_M == at for at in np.unique(bucket_M)}


def _slices(
    connection: duckdb.DuckDBPyConnection, met: _Met, request: Request
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """The stretches that meet each of the user's conditions.

    Raises:
        RbpxError: a condition is wrong, or nothing meets it.
    """
    limits = SqlLimits(request.sql_timeout_s, request.sql_memory_mib)
    rows = _rows(met) if request.conditions else None
    for name, where in request.conditions.items():
        try:
            chosen = ask_where(connection, rows, where, "chosen_rows", limits)
        except RbpxError as problem:
            columns = TOKEN_COLUMNS if _is_one_tokenizer(*met.rows) else COLUMNS
            raise RbpxError(
                f"slices.{name}={where!r} is not a valid condition: {problem}; give one SQL expression over {columns}"
            ) from None
        if not chosen.num_rows:
            raise RbpxError(f"slices.{name}={where!r} matches nothing that both models scored; change it")
        yield name, np.isin(np.arange(len(met.words_M)), chosen["row"].to_numpy())


def _rows(met: _Met) -> pa.Table:
    """The stretches as a table that conditions are asked of."""
    text, (rows_a, rows_b) = met.text, met.rows
    columns: dict[str, Any] = {"row": np.arange(len(text.doc_M)), "text": pa.array(met.words_M, pa.string())}
    columns |= {"doc_id": text.doc_M, "first_byte": text.begin_M, "n_bytes": text.length_M}
    columns |= {"nats_a": text.nats_a_M, "nats_b": text.nats_b_M}
    if _is_one_tokenizer(rows_a, rows_b):
        columns |= {name: rows_a[name].to_numpy()[text.a_M] for name in ("position", "token_id")}
        columns |= {"rank_a": rows_a["rank"].to_numpy()[text.a_M], "rank_b": rows_b["rank"].to_numpy()[text.b_M]}
    return pa.table(columns)


def _passages(met: _Met, source_ids: dict[int, str], top: int) -> Iterator[Passage]:
    """The `top` places where the two models are furthest apart; a repeated text is shown once."""
    shown: set[str] = set()
    for first, nats in telling_spans(met.text):
        words = met.words_M[first : first + SPAN]
        text = "".join("\N{REPLACEMENT CHARACTER}" if word is None else word for word in words)
        if text not in shown:
            shown.add(text)
            doc_id, place = int(met.text.doc_M[first]), int(met.text.begin_M[first])
            yield Passage(doc_id, source_ids.get(doc_id, ""), place, text, float(nats / np.log(2)))
        if len(shown) == top:
            return


def _hits(met: _Met, request: Request, vocab_size: int) -> tuple[tuple[Hits, ...], dict[str, Estimate]]:
    """Hits at each k of the tokens that both scored, and which way ranks move; empty where the tokenizers differ."""
    if not _is_one_tokenizer(*met.rows):
        return (), {}
    a, b = (rows["doc_id"].to_numpy().astype(np.int64) << 32 | rows["position"].to_numpy() for rows in met.rows)
    key, *at = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    doc_ids, doc_N = np.unique(key >> 32, return_inverse=True)
    a_N, b_N = (rows["rank"].to_numpy()[at_N] for rows, at_N in zip(met.rows, at, strict=True))
    found, D = [], len(doc_ids)
    for k in request.k.grid(vocab_size, DEFAULT_K):
        a, b = a_N <= k, b_N <= k
        found.append((k, shares(doc_N, D, rbp_a=a, rbp_b=b, gained=b & ~a, lost=a & ~b, same=a == b)))
    return tuple(found), shares(doc_N, D, better=b_N < a_N, equal=b_N == a_N, worse=b_N > a_N)


def keep(store: Store, comparison: Comparison) -> list[Record]:
    """Rows for programs, told apart by `kind`: part, hits, moves, passage; no law is stored."""
    a, b, unit = comparison.a, comparison.b, comparison.unit
    names: Record = {"a": name_of(a), "b": name_of(b), "run_id_a": a.run_id, "run_id_b": b.run_id}
    names |= {name: getattr(a, name) for name in ("dataset", "text_hash", "protocol", "window", "stride")}
    names |= {"ties": comparison.group.ties.value, "unit": unit}
    rows: list[Record] = []
    for part in comparison.parts:
        row = {"kind": "part", **names, "by": part.by, "name": part.name}
        row |= by_name(bits_a=part.a, bits_b=part.b, change=part.change)
        rows.append(row | {"share": part.share, f"n_{unit}s": part.n_units, "documents": part.n_documents})
    rows += [{"kind": "hits", **names, "k": k, **by_name(**of)} for k, of in comparison.hits]
    if comparison.moves:
        rows.append({"kind": "moves", **names, **by_name(**comparison.moves)})
    return [*rows, *({"kind": "passage", **names, **vars(passage)} for passage in comparison.passages)]
