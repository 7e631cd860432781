"""Whatever bytes a file of texts or of results holds, it is read, or refused in one line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import fuzz

FEW = {"texts": 4, "imports": 5, "engine rows": 20, "parts": 20, "samples": 20}


@pytest.mark.parametrize("target", FEW)
def test_the_corpus_and_a_few_mutations_of_it_are_read_or_refused(target: str) -> None:
    run, corpus = fuzz.TARGETS[target]
    for content in corpus:
        run(content)
    fuzz.drive(run, fuzz.mutated(corpus), FEW[target])


# ----------------------------------------------------------------------- import tables: read back as they were made


@settings(max_examples=3, deadline=None)
@given(st.data())
def test_any_table_of_results_comes_back_as_it_was_written_from_each_format(data: st.DataObject) -> None:
    import csv
    import io
    import json
    import tempfile
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

    names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=5)
    keys = data.draw(st.lists(st.tuples(names, st.integers(1, 40)), min_size=1, max_size=8, unique=True))
    n = data.draw(st.integers(1, 10**6))
    rows = [
        {
            "family": "f",
            "size": size,
            "S": 70_000,
            "dataset": "d",
            "k": k,
            "n_tokens": n,
            "rbp": min(n, k) / n,
        }
        for size, k in keys
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"a{suffix}" for suffix in (".csv", ".json", ".jsonl", ".parquet")]
        paths[0].write_text(text.getvalue(), encoding="utf-8", newline="")
        paths[1].write_text(json.dumps(rows))
        paths[2].write_text("\n".join(map(json.dumps, rows)))
        pq.write_table(pa.Table.from_pylist(rows), paths[3])
        read = [fuzz.import_as_far_as_the_store(path) for path in paths]
    fields = ("family", "size", "non_embedding_params", "dataset", "k", "n_tokens", "rbp")
    for table in read:
        assert [tuple(row[field] for field in fields) for row in table.to_pylist()] == [
            tuple(row.values()) for row in rows
        ]
        assert table["run_id"].equals(read[0]["run_id"])
