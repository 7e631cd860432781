"""Digests of the rows of a table are those of its rows as records, however they are computed."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rbpx.files import digest as module
from rbpx.files.digest import digest, digest_of_rows, digests_of_rows
from rbpx.store.imports.identity import run_ids
from rbpx.store.imports.observations import FIELDS, RUN
from rbpx.store.schema import OBSERVATIONS, TRAINING

NAMES = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(["a", "b"])
KINDS = {
    pa.string(): NAMES,
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(1, 3),
    pa.float64(): st.none() | st.floats(allow_nan=False, allow_infinity=False),
}
ROWS = st.lists(st.fixed_dictionaries({field.name: KINDS[field.type] for field in OBSERVATIONS}), max_size=8)


@settings(max_examples=15, deadline=None)
@given(ROWS, st.integers(1, 4))
def test_digests_of_rows_are_those_of_records(rows: list[dict[str, object]], block: int) -> None:
    table, before = pa.Table.from_pylist(rows, schema=OBSERVATIONS), module._DIGESTED_ROWS
    module._DIGESTED_ROWS = block  # type: ignore[misc]
    try:
        assert digest_of_rows(table) == digest(table.to_pylist())
        names = ["rbp", "family", "k"]
        of_rows = [f"{number:016x}" for number in digests_of_rows(table, names).tolist()]
        assert of_rows == [digest([row[name] for name in names]) for row in rows]
    finally:
        module._DIGESTED_ROWS = before  # type: ignore[misc]


EARLIER = [  # what observations had in the first versions
    *("source", "family", "size", "model", "revision", "non_embedding_params", "dataset", "text_hash", "protocol"),
    *("dtype", "k", "n", "ties", "rbp", "n_tokens", "cross_entropy_nats"),
]


# Of which an id says nothing where they are empty.
LATEST = [
    "weight",
    "active_params",
    "total_params",
    "schedule",
    "schedule_tokens",
    "lr",
    "n_samples",
    "n_correct",
    "item",
    "warmup_tokens",
    "decay_tokens",
    "lr_decay",
    "final_lr",
]


def values_of(row: dict[str, object]) -> list[object]:
    """What a row's digest is of: all its values, or those of the first versions where it says nothing else."""
    S, later = row["non_embedding_params"], [name for name in FIELDS if name not in (*EARLIER, *LATEST)]
    whole = isinstance(S, float) and S.is_integer() and S < 2**53
    if not whole or row["rbp"] is None or any(row[name] is not None for name in later):
        return [row[name] for name in FIELDS if name not in LATEST]
    assert isinstance(S, float)
    return [int(S) if name == "non_embedding_params" else row[name] for name in EARLIER]


def digest_of(row: dict[str, object]) -> str:
    """Of what could be said before, then of each later column that says something."""
    of_row = digest(values_of(row))
    for name in LATEST:
        of_row = of_row if row[name] is None else digest([of_row, row[name]])
    return of_row


def names_of(row: dict[str, object]) -> list[object]:
    known = {name: row[name] for name in TRAINING.names if row[name] is not None}
    return [[row[name] for name in RUN], *([known] if known else [])]


def run_of(row: dict[str, object]) -> tuple[str, object]:
    """Models of one size are runs of their own, though an id has the model's name among the values alone."""
    return digest(names_of(row)), row["model"]


@settings(max_examples=10, deadline=None)
@given(ROWS)
@example([dict.fromkeys(OBSERVATIONS.names) | {"k": 1, "n": 1, "model": model} for model in ("a", "b", "a")])
@example(
    [dict.fromkeys(OBSERVATIONS.names) | {"k": 1, "n": 1, "non_embedding_params": 1e9, "rbp": 0.5, "variant": "x"}]
)
def test_a_run_is_identified_by_its_names_and_its_values_in_any_order(rows: list[dict[str, object]]) -> None:
    members: dict[tuple[str, object], list[str]] = {}
    for row in rows:
        members.setdefault(run_of(row), []).append(digest_of(row))
    for order in (rows, rows[::-1]):
        found = run_ids(pa.Table.from_pylist(order, schema=OBSERVATIONS)).to_pylist()
        assert found == [digest([*names_of(row), sorted(members[run_of(row)])]) for row in order]


def test_an_imported_run_has_the_id_that_the_first_version_gave_it() -> None:
    row = {"source": "them", "family": "toy", "size": "1b", "non_embedding_params": 1e9, "dataset": "wiki"}
    row |= {"k": 1, "n": 1, "ties": "mid", "rbp": 0.41, "cross_entropy_nats": 3.1}
    assert run_ids(pa.Table.from_pylist([row], schema=OBSERVATIONS)).to_pylist() == ["ba6382bcae81e14d"]
