"""What contradicts, repeats or is known already is found as by comparing every row with every other."""

from itertools import combinations
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.store.imports.contradictions import not_stored
from rbpx.store.imports.identity import codes
from rbpx.store.imports.observations import FIELDS, MODEL
from rbpx.store.schema import OBSERVATIONS

Row = dict[str, Any]
SAID = [name for name in FIELDS if name not in (*MODEL, "k", "n", "ties")]  # what two rows can say differently
S_OF = {"a": 10.0, "b": 20.0}

NAMES = st.fixed_dictionaries(
    {
        "source": st.just("them"),
        "family": st.just("toy"),
        "size": st.sampled_from("ab"),
        "dataset": st.sampled_from(["c4", "wiki"]),
        "training_step": st.sampled_from([None, None, 5]),
    }
)
LOSSES = st.sampled_from([None, 2.0, 2.0, 3.0])
RANKED = st.fixed_dictionaries(
    {"k": st.sampled_from([1, 10]), "n": st.just(1), "ties": st.just("mid"), "rbp": st.sampled_from([0.2, 0.2, 0.4])}
    | {"cross_entropy_nats": LOSSES}
)
STATED = st.fixed_dictionaries({"cross_entropy_nats": LOSSES, "accuracy": st.sampled_from([None, 0.5])})
ROWS = st.lists(st.builds(lambda *parts: {**parts[0], **parts[1]}, NAMES, RANKED | STATED), max_size=6)
FILES = ROWS.flatmap(lambda rows: st.sampled_from([rows, rows + rows[:1], rows + rows[-1:]]))  # some repeat a row


def table(rows: list[Row]) -> pa.Table:
    whole = [{"non_embedding_params": S_OF[row["size"]], **row} for row in rows]
    read = pa.Table.from_pylist(whole, schema=OBSERVATIONS).select(FIELDS)
    return read.append_column("row", pa.array(range(len(rows)), pa.int64()))


def named(row: Row, *more: str) -> tuple[object, ...]:
    return tuple(row[name] for name in (*MODEL, *more))


def new_rows(stored: list[Row], read: list[Row]) -> list[int] | None:
    """Which rows of a file are new, by comparing each with all before it; None where they cannot all be true."""
    new: list[int] = []
    rows = stored + read
    for at, row in enumerate(rows):
        is_read, before = at >= len(stored), rows[:at]
        if row["k"] is not None:
            same = [other for other in before if named(other, "k", "n", "ties") == named(row, "k", "n", "ties")]
            if is_read and any(other[name] != row[name] for other in same for name in SAID):
                return None
            is_new = not same
        else:
            alone = [other for other in before if other["k"] is None and named(other) == named(row)]
            firsts = {name: [o for o in alone if o[name] is not None] for name in SAID if row[name] is not None}
            if is_read and any(o[name] != row[name] for name, others in firsts.items() for o in others):
                return None
            is_new = not all(firsts.values())
        if is_read and is_new:
            new.append(at - len(stored))
    for one, other in combinations([row for row in rows if row["k"] is not None], 2):
        low, high = sorted((one, other), key=lambda row: row["k"])
        if named(low, "n", "ties") == named(high, "n", "ties") and low["k"] < high["k"] and high["rbp"] < low["rbp"]:
            return None
    return new


@settings(max_examples=20, deadline=None)
@given(ROWS, FILES)
def test_what_is_new_is_what_comparing_every_pair_of_rows_finds(before: list[Row], file: list[Row]) -> None:
    stored: list[Row] = []
    for row in table(before).select(FIELDS).to_pylist():  # a store holds nothing that contradicts or repeats
        if new_rows(stored, [row]) == [0]:
            stored.append(row)
    read = table(file)
    expected = new_rows(stored, read.select(FIELDS).to_pylist())
    judged = not_stored(read, pa.Table.from_pylist(stored, schema=OBSERVATIONS), "line {}".format)
    assert bool(judged.faults) == (expected is None)
    if expected is not None:
        assert judged.new["row"].to_pylist() == expected


def test_codes_of_many_columns_with_many_values_do_not_overflow() -> None:
    columns = {str(number): pa.array(range(1000), pa.int64()) for number in range(9)}  # 1000^9 combinations
    columns["9"] = pa.array([n // 2 for n in range(1000)], pa.int64())
    assert len(set(codes(pa.table(columns), list(columns)).tolist())) == 1000
    assert len(set(codes(pa.table(columns), ["9"]).tolist())) == 500
