"""Values of records are those that the relations can hold: what is at a limit is kept, what is beyond it is said."""

from typing import Any

import pytest

from rbpx.store.checks.values import value_fault

FIT: dict[str, Any] = {"fit_id": "a", "run_ids": ["b"], "params": {}}
RUN: dict[str, Any] = {
    "protocol": "paper", "dtype": "float32", "text_hash": "t", "tokenizer_hash": "t", "vocab_size": 10,
    "cross_entropy_nats": 1.0, "n_documents": 1, "n_skipped": 0, "n_tokens": 5, "n_bytes": 9,
}  # fmt: skip
VALUES = [  # of which kind, where, what is held, and what is not
    ("runs", "n_tokens", [0, 2**63 - 1, -(2**63), 4.0], [2**63, -(2**63) - 1, 0.5, "5", True, float("nan"), [5]]),
    ("runs", "vocab_size", [2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, False]),
    ("runs", "cross_entropy_nats", [2, 2**53, -1.5], [2**53 + 1, float("inf"), float("nan"), "2", True]),
    ("runs", "family", ["Grüße", ""], ["\ud800", 5, ["a"]]),
    ("runs", "deterministic", [True, False, None], [0, 1, "true"]),
    ("runs", "config", [{}, {"a": 1}], ["{}", [1], 1]),
    ("fits", "run_ids", [[], ["a", "b"]], ["ab", ["a", 1], [None], {"a": 1}]),
    ("fits", "created_at", ["2026-01-01T00:00:00"], ["yesterday", 5]),
]


@pytest.mark.parametrize(("kind", "name", "held", "beyond"), VALUES, ids=[name for _, name, *_ in VALUES])
def test_a_value_is_one_that_its_column_can_hold(kind: str, name: str, held: list[Any], beyond: list[Any]) -> None:
    record = RUN if kind == "runs" else FIT
    assert value_fault(kind, record) is None
    assert [value for value in held if value_fault(kind, record | {name: value}) is not None] == []
    for value in beyond:
        assert f"its {name} is not " in str(value_fault(kind, record | {name: value})), value


@pytest.mark.parametrize("name", RUN)
def test_a_manifest_that_does_not_say_what_readers_need_is_said(name: str) -> None:
    for less in ({**RUN, name: None}, {other: value for other, value in RUN.items() if other != name}):
        assert value_fault("runs", less) == f"it has no {name}"
