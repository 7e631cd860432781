"""Whatever bytes a file of a store holds, it is read, left out with a line, or refused; never a wrong row."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import fuzz, fuzz_store

TARGETS = [
    *(f"record {kind}" for kind in fuzz_store.RECORDS),
    *(f"table {kind}" for kind in fuzz_store.TABLES),
    *("heartbeat", "answer", "ledger"),
]
FEW = {"record": 5, "table": 4, "heartbeat": 30, "answer": 15, "ledger": 4}
MANY = {"record": 3_000, "table": 2_000, "heartbeat": 20_000, "answer": 5_000, "ledger": 1_000}


def target_of(name: str) -> tuple[fuzz_store.Target, list[bytes], st.SearchStrategy[bytes]]:
    what, _, kind = name.partition(" ")
    if what == "ledger":
        return fuzz_store.ledger, fuzz_store.NAMES, st.binary(max_size=40)
    if what == "table":
        return partial(fuzz_store.table, kind), fuzz_store.tables_of(kind), fuzz_store.changed_table(kind)
    kind = kind or f"{what}s"
    run = {"heartbeat": fuzz_store.heartbeat, "answer": fuzz_store.answer}.get(what, partial(fuzz_store.record, kind))
    return run, fuzz_store.files_of(kind), fuzz_store.changed_record(kind)


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_of_a_store_is_read_or_left_out(name: str) -> None:
    run, corpus, _ = target_of(name)
    for content in corpus:
        run(content)


def drive(name: str, n_examples: int) -> None:
    run, corpus, changed = target_of(name)

    @settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changed | fuzz.mutated(corpus))
    def one(content: bytes) -> None:
        run(content)

    one()


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_mutations_of_a_store_are_read_or_left_out(name: str) -> None:
    drive(name, FEW[name.partition(" ")[0]])


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_many_mutations_of_a_store_are_read_or_left_out(name: str) -> None:
    drive(name, MANY[name.partition(" ")[0]])
