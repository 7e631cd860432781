"""Observations that cannot be true together: rows twice, two values of one thing, RBP that falls where k rises.

A row with RBP_k is one statement, whose other values are compared as they are. A row without says each of its values
apart: a loss may come in one file, an accuracy of the same model in another.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.errors import RbpxError
from rbpx.files.numbers import as_written
from rbpx.store.observations import FIELDS, MODEL, written
from rbpx.store.schema import TRAINING

Place = Callable[[int], str]  # the row of a file -> where it is

_VALUES = tuple(name for name in FIELDS if name not in (*MODEL, "k", "n", "ties"))
_Integers = npt.NDArray[np.int64]


def codes(table: pa.Table, names: Sequence[str]) -> _Integers:
    """[R], a number for each combination of values of some columns; equal where all of them are, or are missing."""
    combined = np.zeros(table.num_rows, np.int64)
    for name in names:
        encoded = table[name].combine_chunks().dictionary_encode("encode")
        encoded = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()
        combined = combined * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False)
        if combined.size and combined.max() > 2**31:
            combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return combined


def not_stored(read: pa.Table, stored: pa.Table, place: Place) -> pa.Table:
    """The observations that are not stored already, in order.

    Args:
        read: observations of one file, with `row`.
        stored: those of the same source.
        place: where a row of the file is.

    Raises:
        RbpxError: the first row that cannot be true beside another, of the file or of the store.
    """
    n_stored = stored.num_rows
    both = pa.concat_tables([stored.select(FIELDS), read.select(FIELDS)])
    rows = read["row"].to_numpy()
    one = _Pairs(both, n_stored, lambda at: "the store" if at < n_stored else place(int(rows[at - n_stored])))
    faults = [*one.of_identities(), *one.of_statements(), *one.of_sizes()]
    if faults:
        at, line = min(faults, key=lambda fault: fault[0])
        raise RbpxError(f"{place(int(rows[at - n_stored]))}: {line}")
    new = ~one.known[n_stored:]
    return read if new.all() else read.filter(pa.array(new))


def _firsts(order: _Integers, again: npt.NDArray[np.bool_]) -> _Integers:
    """For each of a sequence but its first: where the row of equals begins that it belongs to."""
    begins = np.where(np.concatenate([[True], ~again]), np.arange(len(order)), 0)
    return order[np.maximum.accumulate(begins)][1:] if len(order) else order


def _digits(S: float) -> str:
    return f"{int(S):,}" if S == int(S) else written(S)


class _Pairs:
    """Observations sorted so that those which must agree are neighbours; the earlier of equals comes first."""

    def __init__(self, both: pa.Table, n_stored: int, where: Callable[[int], str]) -> None:
        self.both, self.n_stored, self.where = both, n_stored, where
        self.known = np.zeros(both.num_rows, bool)
        self.known[:n_stored] = True

    def of_identities(self) -> Iterator[tuple[int, str]]:
        """Of rows with RBP: (observation, what is wrong), one of each kind, the first."""
        at_k = np.flatnonzero(pc.is_valid(self.both["k"]).to_numpy())
        curve, k = codes(self.both, (*MODEL, "ties", "n")), pc.fill_null(self.both["k"], 0).to_numpy()
        rbp, values = self.both["rbp"].to_numpy(), codes(self.both, _VALUES)
        order = at_k[np.lexsort((at_k, k[at_k], curve[at_k]))]
        before, after = order[:-1], order[1:]
        same_curve = curve[before] == curve[after]
        twice = same_curve & (k[before] == k[after])
        # of several equal ones each is compared with the first
        first = _firsts(order, twice)
        new = after >= self.n_stored
        differs = twice & new & (values[first] != values[after])
        yield from self._first(after, first, differs, self._other_value)
        equal = twice & new & ~differs
        yield from self._first(after, first, equal & (first >= self.n_stored), self._repeated)
        self.known[after[equal & (first < self.n_stored)]] = True
        fresh = np.maximum(before, after) >= self.n_stored
        yield from self._first(before, after, same_curve & ~twice & fresh & (rbp[after] < rbp[before]), self._falls)

    def of_statements(self) -> Iterator[tuple[int, str]]:
        """Of rows without RBP: another value of what was said before, and rows that say nothing new."""
        alone = np.flatnonzero(pc.is_null(self.both["k"]).to_numpy())
        if not alone.size:
            return
        n_new, earliest = np.zeros(len(self.known), np.int64), np.full(len(self.known), -1)
        model = codes(self.both, MODEL)
        for name in _VALUES:
            said = alone[pc.is_valid(self.both[name]).to_numpy()[alone]]
            order = said[np.lexsort((said, model[said]))]
            n_new[order[:1]] += 1
            before, after = order[:-1], order[1:]
            again = model[before] == model[after]
            first, values = _firsts(order, again), codes(self.both, (name,))
            differs = again & (after >= self.n_stored) & (values[first] != values[after])
            yield from self._first(after, first, differs, partial(self._other_value, name=name))
            n_new[after[~again]] += 1
            earliest[after[again]] = np.maximum(earliest[after[again]], first[again])
        nothing_new = alone[(n_new[alone] == 0) & (alone >= self.n_stored)]
        self.known[nothing_new] = True
        yield from self._first(
            nothing_new, earliest[nothing_new], earliest[nothing_new] >= self.n_stored, self._repeated
        )

    def of_sizes(self) -> Iterator[tuple[int, str]]:
        """A size that has another S than before."""
        S = self.both["non_embedding_params"].to_numpy()
        _, firsts, size = np.unique(codes(self.both, ("family", "size")), return_index=True, return_inverse=True)
        before, at = firsts[size], np.arange(len(S))
        yield from self._first(at, before, (S != S[before]) & (at >= self.n_stored), self._other_size)

    def _first(
        self, one: _Integers, other: _Integers, wrong: npt.NDArray[np.bool_], explain: Callable[[int, int], str]
    ) -> Iterator[tuple[int, str]]:
        later = np.maximum(one, other)[wrong]
        if later.size:
            at = int(np.argmin(later))
            yield int(later[at]), explain(int(one[wrong][at]), int(other[wrong][at]))

    def _value(self, name: str, at: int) -> Any:
        return self.both[name][at].as_py()

    def _name(self, at: int) -> str:
        family, size, dataset = (self._value(name, at) for name in ("family", "size", "dataset"))
        more = {name: self._value(name, at) for name in ("k", "n", *TRAINING.names)}
        known = [f"{name}={value}" for name, value in more.items() if value is not None]
        return ", ".join([f"{family} {size} on {dataset}", *known])

    def _other_value(self, at: int, other: int, name: str | None = None) -> str:
        name = name or next(name for name in _VALUES if self._value(name, at) != self._value(name, other))
        apart = "" if self._value("k", at) is not None else "give runs that differ another size, variant or step, "
        return (
            f"{name} of {self._name(at)} is {as_written(self._value(name, at))}, but "
            f"{as_written(self._value(name, other))} in {self.where(other)}; keep one of them, {apart}or name another "
            f"source than {self._value('source', at)}"
        )

    def _repeated(self, at: int, other: int) -> str:
        return f"repeats {self.where(other)}: {self._name(at)}; leave one of them out"

    def _falls(self, low: int, high: int) -> str:
        at, other = max(low, high), min(low, high)
        return (
            f"rbp of {self._name(at)} is {self._value('rbp', at)}, but {self._value('rbp', other)} at "
            f"k={self._value('k', other)} in {self.where(other)}; a hit among the first k is one among more, so RBP "
            "never falls in k: correct one of them"
        )

    def _other_size(self, at: int, other: int) -> str:
        S, before = (self._value("non_embedding_params", each) for each in (at, other))
        return (
            f"non_embedding_params of {self._value('family', at)} {self._value('size', at)} is {_digits(S)}, but "
            f"{_digits(before)} in {self.where(other)}; a size has one S, so give sizes different names or correct it"
        )
