"""Finds observations that contradict each other, and those that repeat what is known.

Two values of one thing are a contradiction, and so is an RBP that falls as k rises; repeated values count once. A row
with RBP_k is one statement, and its other values are compared with it. In a row without RBP_k each value stands for
itself: a loss and an accuracy of one model may come in different files.

Shapes: R rows of a table, those of the store first; P pairs of rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import Keep
from rbpx.files.cells import as_written
from rbpx.spelling import typed
from rbpx.store.imports.faults import Faults
from rbpx.store.imports.identity import codes, rows_of
from rbpx.store.imports.observations import FIELDS, MODEL, SAID, STATED, valid, written
from rbpx.store.schema import TRAINING, varied, with_all, with_varied

Place = Callable[[int], str]  # the location of a row of the file
Shown = Callable[[str, str | None, str | None], str]  # a field, its text and its run -> the user's name of its column

_S: Final = "non_embedding_params"  # one for each size, whatever else a row has
_VALUES: Final = tuple(name for name in FIELDS if name not in (*MODEL, "item", "k", "n", "ties", _S))
_Integers = npt.NDArray[np.int64]
_Pairs = tuple[_Integers, _Integers, Callable[["_Pair"], str]]  # [P] rows, [P] other rows, message


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

    def told(row: int, of_row: Mapping[int, tuple[int, int]], explain: Callable[["_Pair"], str]) -> str:
        one, other = (both.slice(at, 1).to_pylist()[0] for at in of_row[row])
        at = of_row[row][1]
        where = "the store" if at < n_stored else place(int(rows[at - n_stored]))
        return explain(_Pair(one, other, where, shown, at >= n_stored))

    faults = Faults()
    says_new, repeats = np.zeros((2, both.num_rows), bool)
    firsts: dict[str | None, _Integers] = {}  # field -> the first rows that state it
    more: _Integers = np.empty(0, np.int64)  # rows that add to what the store has
    pairs: list[_Pairs] = []
    for name, said, thing, of in _statements(both):
        first = _firsts(said, thing)
        firsts[name] = said[first == said]
        says_new[firsts[name]] = True
        more = said[(first < n_stored) & (said >= n_stored)] if name == _S else more
        at, before = said[said != first], first[said != first]
        repeats[at[before >= n_stored]] = True
        values = [codes(both, [column]) for column in of if at.size]
        differs = np.any([np.zeros(at.size, bool), *(value[at] != value[before] for value in values)], axis=0)
        pairs.append((at[differs], before[differs], methodcaller("other_value", name)))
    for at, other, explain in (*pairs, _falling(both), *_other_sizes(both)):
        ends = zip(np.maximum(at, other).tolist(), np.minimum(at, other).tolist(), strict=True)
        of_row = {int(rows[late - n_stored]): (late, early) for late, early in ends if late >= n_stored}
        faults.add(np.array(list(of_row), np.int64), partial(told, of_row=of_row, explain=explain))
    is_new, repeated = says_new[n_stored:], (repeats & ~says_new)[n_stored:]
    once, new = rows_of(read, ~repeated), rows_of(read, is_new)
    updated = {name: np.intersect1d(said, more) for name, said in firsts.items() if name is not None}
    updated = {name: at for name, at in updated.items() if at.size}
    n_updated = len(np.unique(rows[np.concatenate([more[:0], *updated.values()]) - n_stored]))
    shown_as = tuple(shown(name, None, None) for name in updated)
    return Comparison(once, new, len(np.unique(rows[repeated])), faults, n_updated, shown_as)


def unsaid(before: pa.Table, read: pa.Table) -> tuple[pa.Table, list[str]]:
    """Those of some observations without a value in others, another one counts; and the facts of the rest there."""
    both, gone, lost = _together(before, read), np.zeros(before.num_rows + read.num_rows, bool), dict[str, _Integers]()
    for name, said, thing, _ in _statements(both) if before.num_rows else ():
        lacks = said[~np.isin(thing[said], thing[said[said >= before.num_rows]])]
        if name in (None, _S, *STATED):
            gone[lacks] = True
        else:
            lost[name] = lacks
    return rows_of(before, gone[: before.num_rows]), [name for name, lacks in lost.items() if not gone[lacks].all()]


def _together(stored: pa.Table, read: pa.Table) -> pa.Table:
    columns = with_varied(SAID, [*stored.column_names, *read.column_names])
    return pa.concat_tables([with_all(stored, columns), with_all(read, columns)])


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


def _statements(both: pa.Table) -> Iterator[tuple[str | None, _Integers, _Integers, Sequence[str]]]:
    """For each kind of statement: its field, its rows, for each row a number for its subject, and what it is of it."""
    model = (*MODEL, "item", *varied(both.column_names))
    has_k = valid(both["k"])
    yield None, np.flatnonzero(has_k), codes(both, (*model, "ties", "n", "k")), _VALUES
    if not has_k.all():
        thing = codes(both, model)
        for name in _VALUES:
            yield name, np.flatnonzero(~has_k & valid(both[name])), thing, [name]
        yield _S, np.flatnonzero(~has_k), thing, []  # `_other_sizes` compares S


def _falling(both: pa.Table) -> _Pairs:
    """Pairs of one curve whose RBP falls as k rises."""
    at_k = np.flatnonzero(valid(both["k"]))
    curve = codes(both, (*MODEL, "item", *varied(both.column_names), "ties", "n"))
    k, rbp = pc.fill_null(both["k"], 0).to_numpy(), both["rbp"].to_numpy()
    order = at_k[np.lexsort((at_k, k[at_k], curve[at_k]))]
    low, high = order[:-1], order[1:]
    falls = (curve[low] == curve[high]) & (k[low] < k[high]) & (rbp[high] < rbp[low])
    return low[falls], high[falls], methodcaller("falls")


def _other_sizes(both: pa.Table) -> Iterator[_Pairs]:
    """Pairs in which a size, or a named model whose size is S, has two values of S."""
    S, at = both[_S].to_numpy(), np.arange(both.num_rows)
    _, first, number = np.unique(S, return_index=True, return_inverse=True)
    digits = pa.array([written(each) for each in S[first].tolist()], pa.string()).take(pa.array(number))
    by_S = np.array(pc.equal(both["size"].combine_chunks(), digits)) & valid(both["model"])
    for name, rule, is_of in (
        ("size", "a size has one S, so give sizes different names", True),
        ("model", "a run has one S, so add a column size if these are several", by_S),
    ):
        before = _firsts(at, codes(both, ("family", name)))
        differs = (S != S[before]) & is_of
        yield at[differs], before[differs], methodcaller("other_S", name, rule)


def _firsts(said: _Integers, thing: _Integers) -> _Integers:
    """For each row the first row about the same thing."""
    _, first, number = np.unique(thing[said], return_index=True, return_inverse=True)
    return said[first[number]]


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


@dataclass(frozen=True)
class _Pair:
    """Two observations that contradict each other; `can_keep` where both are of the file."""

    one: Mapping[str, Any]
    other: Mapping[str, Any]
    where: str
    shown: Shown
    can_keep: bool

    def column(self, name: str) -> str:
        return self.shown(name, self.one["dataset"], self.one["model"])

    @property
    def name(self) -> str:
        one = self.one
        is_named = one["model"] is not None and one["size"] == written(one[_S])
        names = ("item", "k", "n", *TRAINING.names, *varied(one))
        known = [f"{self.column(name)}={one[name]}" for name in names if one[name] is not None]
        return ", ".join([f"{one['family']} {one['model' if is_named else 'size']} on {one['dataset']}", *known])

    def other_value(self, name: str | None) -> str:
        one, other = self.one, self.other
        name = name or next(name for name in _VALUES if one[name] != other[name])
        apart = ""
        if one["k"] is None:
            apart = "give runs that differ another model, variant or step, keep what they vary with "
            apart += f"{typed(columns={'vary_lr': 'COLUMN'})}, "
        keep = f" ({typed(keep='last')} of a step that a restart wrote twice)" if self.can_keep else ""
        return (
            f"{self.column(name)} of {self.name} is {as_written(one[name])}, but {as_written(other[name])} in "
            f"{self.where}; keep one of them{keep}, {apart}or name another source than {one['source']}"
        )

    def falls(self) -> str:
        return (
            f"{self.column('rbp')} of {self.name} is {self.one['rbp']}, but {self.other['rbp']} at "
            f"k={self.other['k']} in {self.where}; every hit among the first k is also one among more, so RBP never "
            "falls as k rises: correct one of them"
        )

    def other_S(self, of: str, rule: str) -> str:
        S, before = (f"{S:,.0f}" if S == int(S) else written(S) for S in (self.one[_S], self.other[_S]))
        return (
            f"{self.column(_S)} of {self.one['family']} {self.one[of]} is {S}, but {before} in {self.where}; {rule}, "
            f"correct it, or name another source than {self.one['source']}"
        )
