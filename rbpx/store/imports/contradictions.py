"""Finds observations that cannot be true together, and gives the run_ids of those that can.

They contradict each other where one thing has two values, or RBP falls as k rises; what is said twice counts once. A
row with RBP_k is one statement, whose other values are compared along with it. In a row without RBP_k each value stands
for itself: a loss may come in one file, and an accuracy of the same model in another.

Shapes: R rows of a table.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.cells import as_written
from rbpx.files.output import digests_of_rows
from rbpx.store.imports.faults import Faults
from rbpx.store.imports.observations import FIELDS, MODEL, RUN, written
from rbpx.store.schema import OBSERVATIONS, TRAINING, varied, with_all, with_varied

Place = Callable[[int], str]  # the row of a file -> where it is
Shown = Callable[[str, str | None, str | None], str]  # a field, its text and its run -> the user's name of its column
Explain = Callable[[int, int], str]

_S = "non_embedding_params"  # which must be one for a size, whatever else a row says
_VALUES = tuple(name for name in FIELDS if name not in (*MODEL, "item", "k", "n", "ties", _S))
_Integers = npt.NDArray[np.int64]
_Contradictory = tuple[_Integers, _Integers, Explain]  # pairs, and what is wrong with one of them


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


@dataclass(frozen=True)
class Judged:
    """The observations of a file beside those of the store.

    Attributes:
        read: those of the file, in order; what several rows repeat stands once.
        new: those of them that are not stored already.
        n_repeated: rows of the file that repeat an earlier one.
        faults: rows that cannot be true beside another, of the file or of the store.
    """

    read: pa.Table
    new: pa.Table
    n_repeated: int
    faults: Faults


def not_stored(read: pa.Table, stored: pa.Table, place: Place, shown: Shown = lambda field, text, run: field) -> Judged:
    """What is new of a file.

    Args:
        read: its observations, with `row`.
        stored: those of the same source.
        place: where a row of the file is.
        shown: field, text and run -> what the user calls that column.
    """
    n_stored = stored.num_rows
    columns = with_varied(fields_of(OBSERVATIONS), [*stored.column_names, *read.column_names])
    both = pa.concat_tables([with_all(stored, columns), with_all(read, columns)])
    rows = read["row"].to_numpy()
    one = _Pairs(both, n_stored, lambda at: "the store" if at < n_stored else place(int(rows[at - n_stored])), shown)
    faults = Faults()
    for one_of, other_of, explain in (*one.of_identities(), *one.of_statements(), *one.of_sizes()):
        later = rows[np.maximum(one_of, other_of) - n_stored]
        faults.add(later, partial(_explained, explain, one_of, other_of), np.arange(len(later)))
    repeated, new = one.repeated[n_stored:], ~one.known[n_stored:]
    once, fresh = (read if kept.all() else read.filter(pa.array(kept)) for kept in (~repeated, new))
    return Judged(once, fresh, len(np.unique(rows[repeated])), faults)


def fields_of(columns: pa.Schema) -> pa.Schema:
    """Columns without the id, which follows from the others."""
    return pa.schema([column for column in columns if column.name != "run_id"])


def _explained(explain: Explain, one: _Integers, other: _Integers, at: int) -> str:
    return explain(int(one[at]), int(other[at]))


def sized(read: pa.Table, stored: pa.Table) -> pa.Table:
    """Observations whose file names no size: as the store calls that S of that model, else the digits of S."""
    named = read["size"]
    if not named.null_count:
        return read
    model = ("family", "model", _S)
    known = {tuple(row[name] for name in model): row["size"] for row in _distinct(stored, (*model, "size"))}
    _, first, number = np.unique(codes(read, model), return_index=True, return_inverse=True)
    labels = [
        (row["model"] is not None and known.get(tuple(row.values()))) or written(row[_S])
        for row in read.select(model).take(pa.array(first)).to_pylist()
    ]
    sizes = pc.coalesce(named, pa.chunked_array([pa.array(labels, pa.string()).take(pa.array(number))]))
    return read.set_column(read.column_names.index("size"), "size", sizes)


def _digits_of(table: pa.Table) -> pa.Array:
    """[R], whether the size of a row is its S, in digits."""
    of_S, number = np.unique(table[_S].to_numpy(), return_inverse=True)
    labels = pa.array([written(S) for S in of_S.tolist()], pa.string())
    return pc.equal(table["size"].combine_chunks(), labels.take(pa.array(number)))


def _distinct(table: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Each combination of values of some columns, in order of their last rows."""
    _, last = np.unique(codes(table, names)[::-1], return_index=True)
    rows: list[dict[str, Any]] = table.select(names).take(pa.array(np.sort(table.num_rows - 1 - last))).to_pylist()
    return rows


def _firsts(order: _Integers, again: npt.NDArray[np.bool_]) -> _Integers:
    """For each row but the first: the row with which its run of equal rows begins."""
    begins = np.where(np.concatenate([[True], ~again]), np.arange(len(order)), 0)
    return order[np.maximum.accumulate(begins)][1:] if len(order) else order


def _digits(S: float) -> str:
    return f"{int(S):,}" if S == int(S) else written(S)


class _Pairs:
    """Observations sorted so that those which must agree are neighbours; the earlier of equals comes first."""

    def __init__(self, both: pa.Table, n_stored: int, where: Callable[[int], str], shown: Shown) -> None:
        self.both, self.n_stored, self.where, self.shown = both, n_stored, where, shown
        self.varied = varied(both.column_names)
        self.model = (*MODEL, "item", *self.varied)
        self.known, self.repeated = np.zeros(both.num_rows, bool), np.zeros(both.num_rows, bool)
        self.known[:n_stored] = True

    def of_identities(self) -> Iterator[_Contradictory]:
        """Of rows with RBP: pairs that contradict each other, of each kind."""
        at_k = np.flatnonzero(pc.is_valid(self.both["k"]).to_numpy())
        curve, k = codes(self.both, (*self.model, "ties", "n")), pc.fill_null(self.both["k"], 0).to_numpy()
        rbp, values = self.both["rbp"].to_numpy(), codes(self.both, _VALUES)
        order = at_k[np.lexsort((at_k, k[at_k], curve[at_k]))]
        before, after = order[:-1], order[1:]
        same_curve = curve[before] == curve[after]
        twice = same_curve & (k[before] == k[after])
        # of several equal ones each is compared with the first
        first = _firsts(order, twice)
        new = after >= self.n_stored
        differs = twice & new & (values[first] != values[after])
        yield after[differs], first[differs], self._other_value
        equal = twice & new & ~differs
        self.known[after[equal]] = True
        self.repeated[after[equal & (first >= self.n_stored)]] = True
        falls = same_curve & ~twice & (np.maximum(before, after) >= self.n_stored) & (rbp[after] < rbp[before])
        yield before[falls], after[falls], self._falls

    def of_statements(self) -> Iterator[_Contradictory]:
        """Of rows without RBP: another value of what was said before."""
        alone = np.flatnonzero(pc.is_null(self.both["k"]).to_numpy())
        if not alone.size:
            return
        n_new, earliest = np.zeros(len(self.known), np.int64), np.full(len(self.known), -1)
        model = codes(self.both, self.model)
        for name in (*_VALUES, _S):
            said = alone[pc.is_valid(self.both[name]).to_numpy()[alone]]
            order = said[np.lexsort((said, model[said]))]
            n_new[order[:1]] += 1
            before, after = order[:-1], order[1:]
            again = model[before] == model[after]
            first, values = _firsts(order, again), codes(self.both, (name,))
            differs = again & (after >= self.n_stored) & (values[first] != values[after]) & (name != _S)
            yield after[differs], first[differs], partial(self._other_value, name=name)
            n_new[after[~again]] += 1
            earliest[after[again]] = np.maximum(earliest[after[again]], first[again])
        nothing_new = alone[(n_new[alone] == 0) & (alone >= self.n_stored)]
        self.known[nothing_new] = True
        self.repeated[nothing_new[earliest[nothing_new] >= self.n_stored]] = True

    def of_sizes(self) -> Iterator[_Contradictory]:
        """A size, or a named model whose size is S, that has another S than before."""
        S, at = self.both[_S].to_numpy(), np.arange(self.both.num_rows)
        by_S = _digits_of(self.both).to_numpy(zero_copy_only=False) & pc.is_valid(self.both["model"]).to_numpy()
        rules = (
            ("size", "a size has one S, so give sizes different names", True),
            ("model", "a run has one S, so add a column size if these are several", by_S),
        )
        for name, rule, is_of in rules:
            _, firsts, number = np.unique(codes(self.both, ("family", name)), return_index=True, return_inverse=True)
            before = firsts[number]
            differs = (S != S[before]) & (at >= self.n_stored) & is_of
            yield at[differs], before[differs], partial(self._other_S, name, rule)

    def _value(self, name: str, at: int) -> Any:
        return self.both[name][at].as_py()

    def _column(self, name: str, at: int) -> str:
        return self.shown(name, self._value("dataset", at), self._value("model", at))

    def _name(self, at: int) -> str:
        family, size, model, dataset = (self._value(name, at) for name in ("family", "size", "model", "dataset"))
        if model is not None and size == written(self._value(_S, at)):
            size = model
        more = {name: self._value(name, at) for name in ("item", "k", "n", *TRAINING.names, *self.varied)}
        known = [f"{self._column(name, at)}={value}" for name, value in more.items() if value is not None]
        return ", ".join([f"{family} {size} on {dataset}", *known])

    def _other_value(self, at: int, other: int, name: str | None = None) -> str:
        name = name or next(name for name in _VALUES if self._value(name, at) != self._value(name, other))
        apart = ""
        if self._value("k", at) is None:
            apart = "give runs that differ another model, variant or step, keep what they vary with "
            apart += "columns='{vary_lr: COLUMN}', "
        return (
            f"{self._column(name, at)} of {self._name(at)} is {as_written(self._value(name, at))}, but "
            f"{as_written(self._value(name, other))} in {self.where(other)}; keep one of them, {apart}or name another "
            f"source than {self._value('source', at)}"
        )

    def _falls(self, low: int, high: int) -> str:
        at, other = max(low, high), min(low, high)
        return (
            f"{self._column('rbp', at)} of {self._name(at)} is {self._value('rbp', at)}, but "
            f"{self._value('rbp', other)} at k={self._value('k', other)} in {self.where(other)}; every hit "
            "among the first k is also one among more, so RBP never falls as k rises: correct one of them"
        )

    def _other_S(self, of: str, rule: str, at: int, other: int) -> str:
        S, before = (self._value(_S, each) for each in (at, other))
        return (
            f"{self._column(_S, at)} of {self._value('family', at)} {self._value(of, at)} is {_digits(S)}, but "
            f"{_digits(before)} in {self.where(other)}; {rule}, correct it, or name another source than "
            f"{self._value('source', at)}"
        )


_FIRST: Final = (  # fields of the first versions, whose ids stay
    *("source", "family", "size", "model", "revision", "non_embedding_params", "dataset", "text_hash", "protocol"),
    *("dtype", "k", "n", "ties", "rbp", "n_tokens", "cross_entropy_nats"),
)

# Fields that came later than both; what no observation of before could say enters its id where it is not empty.
LATER: Final = (
    *("weight", "active_params", "total_params", "schedule", "schedule_tokens", "lr"),
    *("n_samples", "n_correct", "item"),
)
_SECOND: Final = tuple(name for name in FIELDS if name not in LATER)

_IN_LIST: Final = b'"0123456789abcdef", '  # a digest as JSON writes it, and what follows it in a list
_WIDTH: Final = len(_IN_LIST)


def run_ids(observations: pa.Table) -> pa.Array:
    """The run_id of each observation: a digest of the names of its run and of its values, whatever their order.

    What earlier versions could say has the id that they gave it: later columns enter where they are not empty.
    """
    n = observations.num_rows
    if not n:
        return pa.array([], pa.string())
    knobs = varied(observations.column_names)
    of_rows, runs = _of_rows(observations), codes(observations, (*MODEL, *knobs))
    order = np.lexsort((of_rows, runs))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(runs[order]) != 0]))
    firsts = observations.take(pa.array(order[starts]))
    names = zip(*(firsts[name].to_pylist() for name in RUN), strict=True)
    trainings = firsts.select([*TRAINING.names, *knobs]).to_pylist()
    written, ends = _written(of_rows[order]), np.append(starts[1:], n)
    ids = []
    for run, training, start, end in zip(names, trainings, starts.tolist(), ends.tolist(), strict=True):
        known = {name: value for name, value in training.items() if value is not None}
        before = json.dumps([list(run), *([known] if known else [])], sort_keys=True)
        members = written[_WIDTH * start : _WIDTH * end - len(", ")]  # as `digest([run, known, of_rows])`
        ids.append(hashlib.sha256(before[:-1].encode() + b", [" + members + b"]]").hexdigest()[:16])
    number = np.empty(n, np.int64)
    number[order] = np.repeat(np.arange(len(ids)), ends - starts)
    return pa.array(ids, pa.string()).take(pa.array(number))


def _of_rows(observations: pa.Table) -> npt.NDArray[np.uint64]:
    """[R], a digest of the values of each row."""
    S = observations["non_embedding_params"].to_numpy()
    is_first = (S == np.floor(S)) & (S < 2.0**53) & _valid(observations, "rbp")
    for name in _SECOND:
        if name not in _FIRST and observations[name].null_count < len(S):
            is_first &= ~_valid(observations, name)
    digests = np.empty(len(S), np.uint64)
    first = _of(observations.select(_FIRST), is_first)
    at, whole = _FIRST.index("non_embedding_params"), first["non_embedding_params"].cast(pa.int64())
    digests[is_first] = digests_of_rows(first.set_column(at, "non_embedding_params", whole), _FIRST)
    if not is_first.all():
        digests[~is_first] = digests_of_rows(_of(observations, ~is_first), _SECOND)
    for name in LATER:
        says = _valid(observations, name)
        if says.any():
            before = pa.array([f"{digest:016x}" for digest in digests[says].tolist()], pa.string())
            more = pa.table({"before": before, name: _of(observations, says)[name]})
            digests[says] = digests_of_rows(more, more.column_names)
    return digests


def _of(table: pa.Table, chosen: npt.NDArray[np.bool_]) -> pa.Table:
    return table if chosen.all() else table.filter(pa.array(chosen))


def _valid(table: pa.Table, name: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_valid(table[name]).to_numpy())


def _written(digests: npt.NDArray[np.uint64]) -> bytes:
    """Digests as JSON writes a list of them, each with what follows it."""
    texts = np.empty((len(digests), _WIDTH), np.uint8)
    texts[:] = np.frombuffer(_IN_LIST, np.uint8)
    texts[:, 1:17] = np.frombuffer(digests.astype(">u8").tobytes().hex().encode(), np.uint8).reshape(-1, 16)
    return texts.tobytes()
