"""Rows written while they are read: where a file of the store fails on the way, it is said that some are missing."""

from collections.abc import Iterator

import pyarrow as pa

from rbpx.errors import DamageError, MeasureError
from rbpx.files.output import Rows
from rbpx.store.integrity import doubt
from rbpx.store.store import Store


def known_complete(rows: Rows, store: Store, output: str | None) -> Rows:
    """Rows on their way to an output; what was printed cannot be taken back, so it is said that it is not all.

    Raises:
        MeasureError: a file of the store failed after rows were printed; files are written whole or not at all, so for
            an output that is a file the question can be repeated, as `read_again` does.
    """

    def parts() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except DamageError as problem:
            if output is not None:
                raise
            doubt(store)
            raise MeasureError(f"{problem}; what was printed is not all: run the same line again") from None

    return Rows(rows.schema, parts())
