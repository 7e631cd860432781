"""Rows that the index has are those of their files, and a file that was touched since is read again."""

from pathlib import Path

import duckdb
import pytest

from rbpx.store import relations
from rbpx.store.index import refresh_index
from rbpx.store.known_rows import INDEX, known_rows, stamps_of
from rbpx.store.messages import collected_messages
from rbpx.store.store import Store, now

DISTRIBUTIONS = ("lognormal", "power_law", "power_law_cutoff", "weibull")


def write(store: Store, distribution: str, loglik: float) -> Path:
    name = f"run-mid-{distribution}"
    record = {"run_id": "run", "ties": "mid", "distribution": distribution, "params": {"mu": [1.5, None]}}
    store.write_record("rank_fits", name, record | {"loglik": loglik, "created_at": now()})
    return store.root / "rank_fits" / f"{name}.json"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.prepare()
    for at, distribution in enumerate(DISTRIBUTIONS):
        write(store, distribution, -1.0 * at)
    refresh_index(store)
    return store


def known(store: Store) -> list[str]:
    names, _ = known_rows(store, {"rank_fits": stamps_of(store, "rank_fits")}).get("rank_fits", ([], None))
    return [name.removeprefix("run-mid-") for name in names]


def rows(store: Store) -> list[tuple[str, float]]:
    """What the relation has; the same as if each file had been read, in the same order and types."""
    stamps = {name: stamps_of(store, name) for name in relations.BY_RECORD}
    with collected_messages() as said:
        table = relations.record_tables(store, stamps)["rank_fits"]
    with collected_messages() as said_by_files:
        assert table.equals(relations.table(store, "rank_fits"))
    assert said == said_by_files
    return list(zip(table["distribution"].to_pylist(), table["loglik"].to_pylist(), strict=True))


def test_all_rows_of_an_index_that_is_up_to_date_are_known(store: Store) -> None:
    assert sorted(known(store)) == list(DISTRIBUTIONS)
    assert rows(store) == [("lognormal", 0.0), ("power_law", -1.0), ("power_law_cutoff", -2.0), ("weibull", -3.0)]


def test_what_was_replaced_removed_or_added_since_is_read(store: Store) -> None:
    write(store, "lognormal", 7.0)
    store.drop_record("rank_fits", "run-mid-power_law")
    write(store, "zipf", 9.0)
    assert sorted(known(store)) == ["power_law_cutoff", "weibull"]
    assert rows(store) == [("lognormal", 7.0), ("power_law_cutoff", -2.0), ("weibull", -3.0), ("zipf", 9.0)]
    refresh_index(store)
    assert len(known(store)) == 4
    assert [loglik for _, loglik in rows(store)] == [7.0, -2.0, -3.0, 9.0]


def test_what_is_corrupt_is_never_known_and_said_each_time(store: Store) -> None:
    path = write(store, "weibull", -3.0)
    path.write_text(path.read_text().replace("1.5", "2.5"))
    for _ in range(2):
        refresh_index(store)
        assert "weibull" not in known(store)
        with collected_messages() as said:
            relations.record_tables(store, {name: stamps_of(store, name) for name in relations.BY_RECORD})
        assert "run-mid-weibull.json" in said[0]
        assert len(rows(store)) == 3


@pytest.mark.parametrize("harm", ["deleted", "cut short", "of an earlier version"])
def test_an_index_that_says_nothing_of_its_records_knows_none(harm: str, store: Store) -> None:
    index = store.root / INDEX
    if harm == "deleted":
        index.unlink()
    elif harm == "cut short":
        index.write_bytes(index.read_bytes()[:9000])
    else:
        with duckdb.connect(str(index)) as connection:
            connection.execute("DROP TABLE index_records")
    assert known(store) == []
    assert len(rows(store)) == 4
