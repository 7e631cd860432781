"""Whatever bytes a file of a store holds, it is read, left out with a line, or refused; never a wrong row."""

import io
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.store.messages import collected_messages, warn_damage
from tests.support import fuzz, fuzz_store

DAILY = [f"record {kind}" for kind in fuzz_store.RECORDS]


@pytest.mark.parametrize("name", DAILY)
def test_what_is_read_of_a_store_is_sound_or_left_out(name: str) -> None:
    run, corpus, changed = fuzz_store.target_of(name, whole=False)
    for content in corpus:
        run(content)
    fuzz.drive(run, changed | fuzz.mutated(corpus), 3)


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


def test_half_a_record_is_left_out_by_all_that_read_a_store() -> None:
    run, corpus, _ = fuzz_store.target_of("record cells", whole=True)
    run(corpus[2])
