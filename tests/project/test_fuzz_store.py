"""Whatever bytes a file of a store holds, it is read, left out with a line, or refused; never a wrong row."""

import io
import logging
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rbpx.store.messages import collected_messages, warn_damage
from tests.support import fuzz, fuzz_store

TARGETS = [
    *(f"record {kind}" for kind in fuzz_store.RECORDS),
    *(f"table {kind}" for kind in fuzz_store.TABLES),
    *("heartbeat", "answer", "ledger", "sample", "index", "push", "pull", "publish"),
]
FEW = {"record": 6, "table": 1, "heartbeat": 20, "answer": 15, "ledger": 1, "sample": 15, "index": 1}
FEW |= {"push": 15, "pull": 4, "publish": 4}
MANY = {
    "record": 2_000,
    "table": 1_000,
    "heartbeat": 20_000,
    "answer": 5_000,
    "ledger": 500,
    "sample": 5_000,
    "index": 300,
    "push": 5_000,
    "pull": 1_000,
    "publish": 1_000,
}


def target_of(name: str, whole: bool) -> tuple[fuzz_store.Target, list[bytes], st.SearchStrategy[bytes]]:
    what, _, kind = name.partition(" ")
    if what == "ledger":
        return fuzz_store.ledger, fuzz_store.NAMES, st.binary(max_size=40)
    if what == "sample":
        return fuzz_store.sample, fuzz_store.tables_of("samples"), fuzz_store.changed_table("samples")
    if what == "index":
        return fuzz_store.index, fuzz_store.indexes(), st.binary(max_size=40)
    if what == "table":
        return partial(fuzz_store.table, kind), fuzz_store.tables_of(kind), fuzz_store.changed_table(kind)
    if what in ("push", "pull", "publish"):
        run = {"push": fuzz_store.push, "pull": fuzz_store.pull, "publish": fuzz_store.published}[what]
        return run, fuzz_store.files_of("runs"), fuzz_store.changed_record("runs")
    kind = kind or f"{what}s"
    record = partial(fuzz_store.record, kind, whole=whole)
    alone = {"heartbeat": fuzz_store.heartbeat, "answer": fuzz_store.answer}.get(what, record)
    return alone, fuzz_store.files_of(kind), fuzz_store.changed_record(kind)


def drive(name: str, n_examples: int, whole: bool) -> None:
    run, corpus, changed = target_of(name, whole)

    @settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changed | fuzz.mutated(corpus))
    def one(content: bytes) -> None:
        run(content)

    one()


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_read_of_a_store_is_sound_or_left_out(name: str) -> None:
    run, corpus, _ = target_of(name, whole=False)
    for content in corpus[:1] if name in ("ledger", "index") else [] if name.startswith("table") else corpus:
        run(content)
    drive(name, FEW[name.partition(" ")[0]], whole=False)


def test_bytes_that_an_error_quotes_are_a_fault_of_the_file_and_no_error_of_decoding() -> None:
    counts = pq.read_table(fuzz_store.table_path("rank_counts"))
    at, sink = counts.column_names.index("greater"), io.BytesIO()
    damaged = counts.set_column(at, "greater", pa.array([b"\xff"] * counts.num_rows))
    pq.write_table(damaged, sink, write_page_checksum=True)
    fuzz_store.table("rank_counts", sink.getvalue())


def test_a_line_about_a_record_can_be_written_whatever_the_record_says() -> None:
    with collected_messages() as lines:
        warn_damage(logging.getLogger("rbpx.store"), Path("store"), "it is the record \ud800")
    assert lines == [r"it is the record \ud800"]


@pytest.mark.parametrize("kind", fuzz_store.RECORDS)
def test_half_a_record_is_left_out_by_all_that_read_a_store(kind: str) -> None:
    run, corpus, _ = target_of(f"record {kind}", whole=True)
    run(corpus[2])


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_a_whole_store_is_sound_whatever_a_file_of_it_holds(name: str) -> None:
    run, corpus, _ = target_of(name, whole=True)
    for content in corpus:
        run(content)
    drive(name, MANY[name.partition(" ")[0]], whole=True)
