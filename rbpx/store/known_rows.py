"""Rows of records that the index has already: the file of a record that was not touched since is not read again.

A record is known by its name and the stamp of its file. What is corrupt is not in the index, so every command reads it
again and says so; an index that is damaged, or of an older version, knows nothing.
"""

from collections.abc import Mapping
from typing import Final

import duckdb
import pyarrow as pa

from rbpx.store import schema
from rbpx.store.store import Store, stamp

INDEX: Final = "rbpx.duckdb"
TABLE: Final = "index_records"  # relation, name and stamp of each record that was there when the index was built
# The relations and, as SQL, the names of their records. Failures are few, and old ones do not say their names.
_NAMES: Final = {"fits": "fit_id", "rank_fits": "concat_ws('-', run_id, ties, distribution)"}
_COLUMNS: Final = {"fits": schema.FITS, "rank_fits": schema.RANK_FITS}

Stamps = dict[str, str]
"""The stamp of each record of a kind by its name, in name order."""


def stamps_of(store: Store, relation: str) -> Stamps:
    """The stamps of all records of a kind; to be taken before they are read."""
    return {path.stem: str(stamp(path)) for path in store.record_files(relation)}


def known_rows(store: Store, stamps_by_relation: Mapping[str, Stamps]) -> dict[str, tuple[list[str], pa.Table]]:
    """For each relation the names of the records that the index has as they are now, and their rows."""
    path, nothing = store.root / INDEX, dict[str, tuple[list[str], pa.Table]]()
    if not path.is_file():
        return nothing
    try:
        with duckdb.connect(str(path), read_only=True) as index:
            return {
                relation: _known(index, relation, stamps)
                for relation, stamps in stamps_by_relation.items()
                if relation in _NAMES
            }
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError):
        return nothing


def _known(index: duckdb.DuckDBPyConnection, relation: str, stamps: Stamps) -> tuple[list[str], pa.Table]:
    rows = index.sql(
        f"SELECT r.name, r.stamp, f.* FROM {relation} AS f JOIN {TABLE} AS r ON r.name = {_NAMES[relation]} "
        f"WHERE r.relation = '{relation}'"
    ).to_arrow_table()
    names, then = rows["name"].to_pylist(), rows["stamp"].to_pylist()
    same = [at for at, (name, seen) in enumerate(zip(names, then, strict=True)) if stamps.get(name) == seen]
    columns = _COLUMNS[relation]
    return [names[at] for at in same], rows.take(pa.array(same, pa.int64())).select(columns.names).cast(columns)


def write_stamps(index: duckdb.DuckDBPyConnection, stamps_by_relation: Mapping[str, Stamps]) -> None:
    """Note in an index that is being built which records its rows are of."""
    noted = [(relation, *each) for relation, stamps in stamps_by_relation.items() for each in stamps.items()]
    columns = {
        name: pa.array([row[at] for row in noted], pa.string()) for at, name in enumerate(("relation", "name", "stamp"))
    }
    index.register("noted", pa.table(columns))
    index.execute(f"CREATE TABLE {TABLE} AS FROM noted")
    index.unregister("noted")
