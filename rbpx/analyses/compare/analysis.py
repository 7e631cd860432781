"""Two models on one text (verb compare): every text that both were measured on, whole and in its parts."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.analyses.compare.difference import Difference, Sums, difference
from rbpx.analyses.compare.hits import Hits, Moves, hits
from rbpx.analyses.compare.kinds import Kind, kind_of, part_of
from rbpx.analyses.compare.meeting import Stretches, Tokens, meet
from rbpx.analyses.compare.telling import SPAN, telling_spans
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.group import Group, Run
from rbpx.groups.side import Side, name_of, runs_by_text
from rbpx.laws.interval import by_name
from rbpx.store.bounded import SqlLimits
from rbpx.store.queries import ask, ask_where
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
PLACES: Final = (0, 64, 256, 1024, 4096, 16384)  # bytes (or tokens) from the beginning of a document
COLUMNS: Final = "doc_id, first_byte, n_bytes, text, nats_a, nats_b"
TOKEN_COLUMNS: Final = f"{COLUMNS}, position, token_id, rank_a, rank_b"


@dataclass(frozen=True)
class Part:
    """One part of a text: `by` is text, kind, place, slice or document, `name` which one."""

    by: str
    name: str
    difference: Difference


@dataclass(frozen=True)
class Passage:
    """A place where the two are far apart, with its text as far as the store has it."""

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
        a: the run that is compared with.
        b: the run that is compared.
        unit: byte, or token where a run of an earlier version does not know its bytes.
        left_out_nats: nats of a and of b over what only one of them scored.
        parts: the whole text first, then kinds, places, slices and documents.
        passages: furthest apart first.
        hits: by k, under one tokenizer; empty under two.
        moves: of ranks, under one tokenizer.
    """

    group: Group
    a: Run
    b: Run
    unit: str
    left_out_nats: tuple[float, float]
    parts: tuple[Part, ...]
    passages: tuple[Passage, ...]
    hits: tuple[Hits, ...]
    moves: Moves | None

    @property
    def whole(self) -> Difference:
        """Of the whole text."""
        return self.parts[0].difference

    @property
    def names(self) -> tuple[str, str]:
        """What the two are called."""
        return name_of(self.a), name_of(self.b)


@dataclass(frozen=True, eq=False)
class _Met:
    """Two runs on one text, side by side: the rows of each, the stretches that both scored, and their texts."""

    rows_a: pa.Table
    rows_b: pa.Table
    text: Stretches
    words_M: list[str | None]
    doc_ids: npt.NDArray[np.int64]

    @property
    def one_tokenizer(self) -> bool:
        return bool(_tokenizer(self.rows_a) == _tokenizer(self.rows_b))

    @property
    def document_M(self) -> npt.NDArray[np.intp]:
        """The place of each stretch's document among those that both scored."""
        return np.searchsorted(self.doc_ids, self.text.doc_M)

    def sums(self, chosen_M: npt.NDArray[np.bool_] | slice = np.s_[:]) -> Sums:
        """Sums by document, of all stretches or of some."""
        columns = self.text.nats_a_M, self.text.nats_b_M, self.text.length_M.astype(np.float64)
        a, b, units = (each[chosen_M] for each in columns)
        return Sums.of(self.document_M[chosen_M], (a, b, units), len(self.doc_ids))


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Comparison]:
    """Compare the two sides on every text that both were measured on.

    Raises:
        RbpxError: a side is not named, is several runs on one text, or there is no text that both were measured on.
    """
    sides = Side.read("a", request.a), Side.read("b", request.b)
    compared = [_compare(connection, group, a, b, request) for group, a, b in _pairs(groups, sides)]
    if not compared:
        raise RbpxError(_nothing(groups, sides))
    return compared


def _pairs(groups: Sequence[Group], sides: tuple[Side, Side]) -> Iterator[tuple[Group, Run, Run]]:
    """The two runs of each text; read alike, whatever their family, revision and dtype."""
    for members in runs_by_text(groups):
        a, b = (side.one_of(run for _, run in members) for side in sides)
        if a is not None and b is not None:
            yield next(group for group, run in members if run is a), a, b


def _nothing(groups: Sequence[Group], sides: tuple[Side, Side]) -> str:
    """Why there is nothing to compare: a side that is not there, or no text in common."""
    runs = [run for group in groups for run in group.runs]
    for side in sides:
        if not any(side.means(run) for run in runs):
            known = ", ".join(list(dict.fromkeys(map(name_of, runs)))[:8])
            return f"{side.key}={side.name} was not measured on the texts asked about; there are: {known}"
    texts = [sorted({run.dataset for run in runs if side.means(run)}) for side in sides]
    a, b = (f"{side.name} on {', '.join(names)}" for side, names in zip(sides, texts, strict=True))
    return f"a and b share no text that was read alike ({a}; {b}); measure both on one, under one protocol"


def _compare(connection: duckdb.DuckDBPyConnection, group: Group, a: Run, b: Run, request: Request) -> Comparison:
    ties = group.ties.value
    rows_a, rows_b = (ask(connection, "compared_tokens", run_id=run.run_id, ties=ties) for run in (a, b))
    unit, met = _meet(rows_a, rows_b, a, b)
    whole = met.sums()
    sliced = dict(_slices(connection, met, request))
    parts = [_part("text", a.dataset, whole, whole)]
    for by, chosen in (("kind", _kinds(met)), ("place", _places(met)), ("slice", sliced)):
        parts += [_part(by, name, met.sums(chosen_M), whole) for name, chosen_M in chosen.items()]
    source_ids = dict(zip(*_columns(ask(connection, "compared_documents", run_id=a.run_id)), strict=True))
    parts += _documents(met, whole, source_ids)
    text = met.text
    found, moves = _hits(met, request, min(run.vocab_size or 0 for run in (a, b)))
    sums = (float(rows["nats"].to_numpy().sum()) for rows in (rows_a, rows_b))
    left_a, left_b = (
        each - float(met_M.sum()) for each, met_M in zip(sums, (text.nats_a_M, text.nats_b_M), strict=True)
    )
    return Comparison(
        group,
        a,
        b,
        unit,
        (left_a, left_b),
        tuple(part for part in parts if part is not None),
        tuple(_passages(met, source_ids, request.top)),
        found,
        moves,
    )


def _meet(rows_a: pa.Table, rows_b: pa.Table, a: Run, b: Run) -> tuple[str, _Met]:
    """The unit of what both scored, and the two side by side.

    Raises:
        RbpxError: a run does not know its bytes, and the tokenizers differ; or no text was scored by both.
    """
    unit = "token" if any(rows["first_byte"].null_count for rows in (rows_a, rows_b)) else "byte"
    if unit == "token" and _tokenizer(rows_a) != _tokenizer(rows_b):
        old = next(run for run, rows in ((a, rows_a), (b, rows_b)) if rows["first_byte"].null_count)
        raise RbpxError(
            f"run {old.run_id} ({name_of(old)} on {old.dataset}) was measured before tokens knew their bytes, so it "
            "cannot be compared across tokenizers; remove it with `store rm` and measure it again"
        )
    text = meet(*(_tokens(rows, unit) for rows in (rows_a, rows_b)))
    if not len(text.doc_M):
        raise RbpxError(f"{name_of(a)} and {name_of(b)} scored no byte of {a.dataset} in common; read it with a window")
    return unit, _Met(rows_a, rows_b, text, list(_words(text, rows_a, rows_b)), np.unique(text.doc_M))


def _tokens(rows: pa.Table, unit: str) -> Tokens:
    doc, nats = rows["doc_id"].to_numpy().astype(np.int64), rows["nats"].to_numpy()
    if unit == "token":
        return Tokens(doc, rows["position"].to_numpy().astype(np.int64), np.ones(len(doc), np.int64), nats)
    return Tokens(doc, rows["first_byte"].to_numpy(), rows["n_bytes"].to_numpy(), nats)


def _tokenizer(rows: pa.Table) -> Any:
    return rows["tokenizer_hash"][0].as_py()


def _words(text: Stretches, rows_a: pa.Table, rows_b: pa.Table) -> Iterator[str | None]:
    """The text of each stretch, from whichever side knows which bytes its token is."""
    known = []
    for rows, of_M in ((rows_a, text.a_M), (rows_b, text.b_M)):
        n_bytes, first = (rows[name].fill_null(-1).to_numpy()[of_M] for name in ("n_bytes", "first_byte"))
        known.append((rows["text"].take(pa.array(of_M)).to_pylist(), n_bytes.tolist(), (text.begin_M - first).tolist()))
    for m, length in enumerate(text.length_M.tolist()):
        parts = (_whole_or_part(words[m], n_bytes[m], begin[m], length) for words, n_bytes, begin in known)
        yield next((part for part in parts if part is not None), None)


def _whole_or_part(word: str | None, n_bytes: int, begin: int, length: int) -> str | None:
    return word if n_bytes in (-1, length) else part_of(word, n_bytes, begin, length)


def _kinds(met: _Met) -> dict[str, npt.NDArray[np.bool_]]:
    kind_M = np.array([kind_of(word).value for word in met.words_M])
    return {kind.value: kind_M == kind.value for kind in Kind if (kind_M == kind.value).any()}


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
    conditions = request.conditions
    if not conditions:
        return
    rows, columns = _rows(met), TOKEN_COLUMNS if met.one_tokenizer else COLUMNS
    for name, where in conditions.items():
        try:
            chosen = ask_where(connection, rows, where, "chosen_rows", limits)
        except RbpxError as problem:
            raise RbpxError(
                f"slices.{name}={where!r} is not a valid condition: {problem}; give one SQL expression over {columns}"
            ) from None
        if not chosen.num_rows:
            raise RbpxError(f"slices.{name}={where!r} is true of nothing that both models scored; change it")
        chosen_M: npt.NDArray[np.bool_] = np.zeros(rows.num_rows, bool)
        chosen_M[chosen["row"].to_numpy()] = True
        yield name, chosen_M


def _rows(met: _Met) -> pa.Table:
    """The stretches as a table for conditions."""
    text = met.text
    columns: dict[str, Any] = {
        "row": np.arange(len(text.doc_M)),
        "doc_id": text.doc_M,
        "first_byte": text.begin_M,
        "n_bytes": text.length_M,
        "text": pa.array(met.words_M, pa.string()),
        "nats_a": text.nats_a_M,
        "nats_b": text.nats_b_M,
    }
    if met.one_tokenizer:
        columns |= {name: met.rows_a[name].to_numpy()[text.a_M] for name in ("position", "token_id")}
        columns |= {"rank_a": met.rows_a["rank"].to_numpy()[text.a_M]}
        columns |= {"rank_b": met.rows_b["rank"].to_numpy()[text.b_M]}
    return pa.table(columns)


def _part(by: str, name: str, part: Sums, whole: Sums) -> Part | None:
    apart = difference(part, whole)
    return None if apart is None else Part(by, name, apart)


def _documents(met: _Met, whole: Sums, source_ids: dict[int, str]) -> list[Part]:
    """Each document, the one that makes most of the difference first; a single document has no interval."""
    parts = []
    change_D = whole.nats_b_D - whole.nats_a_D
    for at in np.lexsort((met.doc_ids, -np.abs(change_D))):
        one = Sums(*(column[at : at + 1] for column in (whole.nats_a_D, whole.nats_b_D, whole.units_D)))
        apart = difference(one, whole)
        if apart is not None:
            doc_id = int(met.doc_ids[at])
            parts.append(Part("document", f"{doc_id} {source_ids.get(doc_id, '')}".strip(), apart))
    return parts


def _passages(met: _Met, source_ids: dict[int, str], top: int) -> Iterator[Passage]:
    """The `top` places where the two are furthest apart; a text that repeats is shown once."""
    shown: set[str] = set()
    for span in telling_spans(met.text):
        words = met.words_M[span.first : span.first + SPAN]
        text = "".join("\N{REPLACEMENT CHARACTER}" if word is None else word for word in words)
        if text not in shown:
            shown.add(text)
            bits = float(span.change_nats / np.log(2))
            yield Passage(span.doc_id, source_ids.get(span.doc_id, ""), span.first_byte, text, bits)
        if len(shown) == top:
            return


def _hits(met: _Met, request: Request, vocab_size: int) -> tuple[tuple[Hits, ...], Moves | None]:
    """Hits of the tokens that both scored; none under two tokenizers."""
    if not met.one_tokenizer:
        return (), None
    key_a, key_b = (
        rows["doc_id"].to_numpy().astype(np.int64) << 32 | rows["position"].to_numpy()
        for rows in (met.rows_a, met.rows_b)
    )
    key, at_a, at_b = np.intersect1d(key_a, key_b, assume_unique=True, return_indices=True)
    doc_ids, doc_N = np.unique(key >> 32, return_inverse=True)
    rank_a, rank_b = met.rows_a["rank"].to_numpy()[at_a], met.rows_b["rank"].to_numpy()[at_b]
    return hits(rank_a, rank_b, doc_N, len(doc_ids), request.k.grid(vocab_size, DEFAULT_K))


def _columns(table: pa.Table) -> list[list[Any]]:
    return [column.to_pylist() for column in table.columns]


def keep(store: Store, compared: Comparison) -> list[Record]:
    """Rows for programs, told apart by `kind`: part, hits, moves, passage; no law is stored."""
    a, b = compared.a, compared.b
    names: Record = {"a": compared.names[0], "b": compared.names[1], "run_id_a": a.run_id, "run_id_b": b.run_id}
    names |= {name: getattr(a, name) for name in ("dataset", "text_hash", "protocol", "window", "stride")}
    names |= {"ties": compared.group.ties.value, "unit": compared.unit}
    rows: list[Record] = []
    for part in compared.parts:
        apart = part.difference
        row = {"kind": "part", **names, "by": part.by, "name": part.name}
        row |= by_name(bits_a=apart.a, bits_b=apart.b, change=apart.change)
        rows.append(row | {"share": apart.share, f"n_{compared.unit}s": apart.n_units, "documents": apart.n_documents})
    for each in compared.hits:
        shares = {name: share for name, share in vars(each).items() if name != "k"}
        rows.append({"kind": "hits", **names, "k": each.k, **by_name(**shares)})
    if compared.moves is not None:
        rows.append({"kind": "moves", **names, **by_name(**vars(compared.moves))})
    return [*rows, *({"kind": "passage", **names, **asdict(passage)} for passage in compared.passages)]
