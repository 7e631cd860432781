"""Finds observations that contradict each other, and those that repeat what is known.

Two values of one thing are a contradiction, and so is an RBP that falls as k rises; repeated values count once. A row
with RBP_k is one statement, and its other values are compared with it. In a row without RBP_k each value stands for
itself: a loss and an accuracy of one model may come in different files.

Shapes: R rows of a table, those of the store first; P pairs of rows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import Keep
from rbpx.files.cells import as_written
from rbpx.spelling import typed
from rbpx.store.imports.faults import Faults, Mask
from rbpx.store.imports.identity import codes, rows_of
from rbpx.store.imports.observations import FIELDS, MODEL, SAID, STATED, valid, written
from rbpx.store.schema import TRAINING, varied, with_all, with_varied

Place = Callable[[int], str]  # the location of a row of the file
Shown = Callable[[str, str | None, str | None], str]  # a field, its text and its run -> the user's name of its column

_S: Final = "non_embedding_params"  # one for each size, whatever else a row has
_VALUES: Final = tuple(name for name in FIELDS if name not in (*MODEL, "item", "k", "n", "ties", _S))
_ONE_S: Final = {  # what has one S -> the remedy
    "size": "a size has one S, so give sizes different names",
    "model": "a run has one S, so add a column size if these are several",
}
_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Comparison:
    """The observations of a file compared with those of the store.

    Attributes:
        read: those of the file, without repetitions.
        faults: rows that contradict another, of the file or of the store.
        n_updated: stored rows to which the file adds fields, `updated`.
    """

    read: pa.Table
    new: pa.Table
    n_repeated: int
    faults: Faults
    n_updated: int = 0
    updated: tuple[str, ...] = ()


def not_stored(
    read: pa.Table, stored: pa.Table, place: Place, shown: Shown = lambda field, text, run: field
) -> Comparison:
    """Compare the observations of a file with those of the store, of the same source."""
    both, n_stored, rows = _together(stored, read), stored.num_rows, read["row"].to_numpy()

    def told(kind: str, of_row: Mapping[int, tuple[int, int]], row: int) -> str:
        before = of_row[row][1]
        where = "the store" if before < n_stored else place(int(rows[before - n_stored]))
        one, other = both.take(of_row[row]).to_pylist()
        return _told(kind, one, other, where, shown, before >= n_stored)

    faults = Faults()
    says_new, repeats = np.zeros((2, both.num_rows), bool)
    firsts: dict[str, _Rows] = {}  # field -> the first rows that state it
    more: _Rows = np.empty(0, np.int64)  # rows that add to what the store has
    for kind, at, before, differs in _said(both):
        late = differs & (at >= n_stored)
        pairs = zip(at[late].tolist(), before[late].tolist(), strict=True)
        of_row = dict(zip(rows[at[late] - n_stored].tolist(), pairs, strict=True))
        faults.add(np.array(list(of_row), np.int64), partial(told, kind, of_row))
        if kind in ("row", *_VALUES, _S):
            is_first = at == before
            firsts[kind] = at[is_first]
            says_new[at[is_first]] = True
            repeats[at[before >= n_stored]] = True
            more = at[(before < n_stored) & (at >= n_stored)] if kind == _S else more
    is_new, repeated = says_new[n_stored:], (repeats & ~says_new)[n_stored:]
    updated = {name: added for name in _VALUES if (added := np.intersect1d(firsts[name], more)).size}
    return Comparison(
        read=rows_of(read, ~repeated),
        new=rows_of(read, is_new),
        n_repeated=len(np.unique(rows[repeated])),
        faults=faults,
        n_updated=len(np.unique(rows[np.concatenate([more[:0], *updated.values()]) - n_stored])),
        updated=tuple(shown(name, None, None) for name in updated),
    )


def unsaid(before: pa.Table, read: pa.Table) -> tuple[pa.Table, list[str]]:
    """Those of some observations without a value in others, another one counts; and the facts of the rest there."""
    n_before, gone, lost = before.num_rows, np.zeros(before.num_rows + read.num_rows, bool), dict[str, _Rows]()
    for kind, at, first, _ in _said(_together(before, read)) if n_before else ():
        lacks = at[~np.isin(first, first[at >= n_before])]
        if kind in ("row", _S, *STATED):
            gone[lacks] = True
        elif kind in _VALUES:
            lost[kind] = lacks
    return rows_of(before, gone[:n_before]), [name for name, lacks in lost.items() if not gone[lacks].all()]


def _together(stored: pa.Table, read: pa.Table) -> pa.Table:
    columns = with_varied(SAID, [*stored.column_names, *read.column_names])
    return pa.concat_tables([with_all(stored, columns), with_all(read, columns)])


def _said(both: pa.Table) -> Iterator[tuple[str, _Rows, _Rows, Mask]]:
    """What observations say: its kind, the rows that say it, for each the first row about the same, and if it differs.

    A kind is `row`, a field of a row without k, `falls` (as k rises), `size` or `model` (which have one S).
    """
    names = (*MODEL, "item", *varied(both.column_names))
    has_k, of_model = valid(both["k"]), codes(both, names)

    def said(kind: str, says: Mask, subject: _Rows, *of: str) -> tuple[str, _Rows, _Rows, Mask]:
        at = np.flatnonzero(says)
        _, first, number = np.unique(subject[at], return_index=True, return_inverse=True)
        before, differs = at[first[number]], np.zeros(at.size, bool)
        for values in (codes(both, [name]) for name in of if (at != before).any()):
            differs |= values[at] != values[before]
        return kind, at, before, differs

    yield said("row", has_k, codes(both, (*names, "ties", "n", "k")), *_VALUES)
    for name in _VALUES:
        yield said(name, ~has_k & valid(both[name]), of_model, name)
    yield said(_S, ~has_k, of_model)
    curve, k, rbp = codes(both, (*names, "ties", "n")), pc.fill_null(both["k"], 0).to_numpy(), both["rbp"].to_numpy()
    along_k = np.flatnonzero(has_k)
    along_k = along_k[np.lexsort((along_k, k[along_k], curve[along_k]))]
    low, high = along_k[:-1], along_k[1:]
    falls = (curve[low] == curve[high]) & (k[low] < k[high]) & (rbp[high] < rbp[low])
    yield "falls", np.maximum(low, high)[falls], np.minimum(low, high)[falls], falls[falls]
    for name in _ONE_S:
        kind, at, before, differs = said(name, np.ones_like(has_k), codes(both, ("family", name)), _S)
        if name == "model":  # several sizes of a model are alright where they have names
            rows = both.select(["model", "size", _S]).filter(pa.array(differs)).to_pylist()
            differs[differs] = [_is_named(row) for row in rows]
        yield kind, at, before, differs


def _is_named(row: Mapping[str, Any]) -> bool:
    """Whether an observation has the name of its model in place of a size."""
    return row["model"] is not None and row["size"] == written(row[_S])


def kept_of(read: pa.Table, keep: Keep) -> tuple[pa.Table, int]:
    """Keep the first or the last of the observations of one model and step; returns them and the number dropped.

    A training that resumes from its last checkpoint writes the steps after it twice.
    """
    names = (*MODEL, _S, "item", "ties", "n", "k", *varied(read.column_names))
    thing = codes(read, names)
    for name in STATED:
        thing = 2 * thing + valid(read[name])
    order = np.arange(len(thing))[:: 1 if keep is Keep.first else -1]
    kept = np.zeros(len(thing), bool)
    kept[order[np.unique(thing[order], return_index=True)[1]]] = True
    return rows_of(read, kept), len(np.unique(read["row"].to_numpy()[~kept]))


def sized(read: pa.Table, stored: pa.Table) -> pa.Table:
    """Fill in missing sizes: the store's name for that S of that model, else the digits of S."""
    if not read["size"].null_count:
        return read
    model = ["family", "model", _S]
    named = stored.group_by([*model, "size"], use_threads=False).aggregate([]).to_pylist()
    known = {tuple(row[name] for name in model): row["size"] for row in named}
    _, first, number = np.unique(codes(read, model), return_index=True, return_inverse=True)
    labels = [
        (row["model"] is not None and known.get(tuple(row.values()))) or written(row[_S])
        for row in read.select(model).take(pa.array(first)).to_pylist()
    ]
    sizes = pc.coalesce(read["size"], pa.chunked_array([pa.array(labels, pa.string()).take(pa.array(number))]))
    return read.set_column(read.column_names.index("size"), "size", sizes)


def _told(kind: str, one: Mapping[str, Any], other: Mapping[str, Any], where: str, shown: Shown, can_keep: bool) -> str:
    """What two observations that contradict each other say; `can_keep` where both are of the file."""

    def column(name: str) -> str:
        return shown(name, one["dataset"], one["model"])

    def size_of(S: float) -> str:
        return f"{S:,.0f}" if S == int(S) else written(S)

    source = f"name another source than {one['source']}"
    if kind in _ONE_S:
        return (
            f"{column(_S)} of {one['family']} {one[kind]} is {size_of(one[_S])}, but {size_of(other[_S])} in {where}; "
            f"{_ONE_S[kind]}, correct it, or {source}"
        )
    names = [name for name in ("item", "k", "n", *TRAINING.names, *varied(one)) if one[name] is not None]
    of = f"{one['family']} {one['model' if _is_named(one) else 'size']} on {one['dataset']}"
    of = ", ".join([of, *(f"{column(name)}={one[name]}" for name in names)])
    if kind == "falls":
        return (
            f"{column('rbp')} of {of} is {one['rbp']}, but {other['rbp']} at k={other['k']} in {where}; every hit "
            "among the first k is also one among more, so RBP never falls as k rises: correct one of them"
        )
    name = kind if kind != "row" else next(name for name in _VALUES if one[name] != other[name])
    vary = typed(columns={"vary_lr": "COLUMN"})
    apart = f"give runs that differ another model, variant or step, keep what they vary with {vary}, "
    keep = f" ({typed(keep='last')} of a step that a restart wrote twice)" if can_keep else ""
    return (
        f"{column(name)} of {of} is {as_written(one[name])}, but {as_written(other[name])} in {where}; keep one of "
        f"them{keep}, {apart if one['k'] is None else ''}or {source}"
    )
