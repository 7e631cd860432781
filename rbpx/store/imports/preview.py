"""Previews an import: a row for each family, text and quantity."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.store.imports.identity import codes
from rbpx.store.imports.observations import MODEL, STATED, stated, valid
from rbpx.store.schema import varied

_RANGES: Final = {"S": "non_embedding_params", "D": "training_tokens", "C": "training_flops", "step": "training_step"}


def n_different(table: pa.Table, *names: str) -> int:
    """The number of distinct combinations of values of some columns."""
    return len(np.unique(codes(table, names)))


def n_measured(table: pa.Table) -> int:
    """The number of observations that have a value; the others are planned steps of runs."""
    return int(stated(table).sum())


def preview(read: pa.Table, new: pa.Table) -> list[dict[str, Any]]:
    """One row for each family, text and quantity; `models` has each training of a size once, `runs` its checkpoints."""
    whole = read.append_column("is_new", pc.is_in(read["row"], new["row"].combine_chunks()))
    of_text = codes(read, ("family", "dataset"))
    rows = []
    for name in ("rbp", *STATED):
        has = valid(read[name])
        for text in dict.fromkeys(of_text[has].tolist()):
            of = whole.filter(pa.array(has & (of_text == text)))
            row: dict[str, Any] = {one: of[one][0].as_py() for one in ("family", "dataset")}
            row |= {"quantity": name, "rows": of.num_rows, "new": pc.sum(of["is_new"]).as_py()}
            row["models"] = n_different(of, "family", "size", "model")
            row["runs"] = n_different(of, *MODEL, *varied(of.column_names))
            for label, column in _RANGES.items():
                ends = pc.min_max(of[column]).as_py()
                row |= {f"{label}_min": ends["min"], f"{label}_max": ends["max"]}
            rows.append(row)
    return sorted(rows, key=lambda row: (row["family"], row["dataset"]))
