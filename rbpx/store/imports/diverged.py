"""Finds imported runs whose loss at their end is far above that of a run with no more parameters and tokens.

More parameters or tokens cannot cost that much: such a run diverged, or is of another text or unit.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.imports import ImportConfig
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.columns import Columns
from rbpx.store.imports.identity import codes
from rbpx.store.imports.observations import MODEL
from rbpx.store.relations import read_sql
from rbpx.store.schema import varied
from rbpx.store.sql import select_among

_GROUP: Final = ("family", "dataset", "text_hash", "protocol", "dtype", "variant", "unique_tokens")
_PROGRESS: Final = ("training_tokens", "training_flops", "training_step")
_LOSSES: Final = ("cross_entropy_nats", "bits_per_byte")
_MOST: Final = 4  # runs that are named


def told_diverged(read: pa.Table, table: Rows, columns: Columns, config: ImportConfig) -> Iterator[str]:
    """A line for each run that diverged: its name, its loss beside another's, and how to leave it out."""
    found = sorted(_diverged(read).values(), key=lambda each: each[1])
    for quantity, *ends in found[:_MOST]:
        one, than = read.take(ends).to_pylist()
        loss = columns.shown(quantity, one["dataset"], one["model"])
        names = ("model",) if "model" in columns.named else ("non_embedding_params", *_PROGRESS)
        names = (*names, "variant", "training_seed", *varied(read.column_names))
        named = [columns.named[name] for name in names if name in columns.named]
        cells = table.rows[one["row"]].values
        same = " AND ".join(f"{_identifier(name)} = '{cells.get(name)}'" for name in named)
        others = f"NOT ({same})" if config.where is None else f"({config.where}) AND NOT ({same})"
        out = "leave it out of runs=" if columns.apart == "runs" else f"leave it out with {typed(where=others)}"
        yield (
            f"{_name(one)} on {one['dataset']} has {loss} {one[quantity]:.4g}, where {_name(than)} with no more "
            f"parameters and tokens has {than[quantity]:.4g}: it may have diverged; {out}"
        )
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST:,} more runs that may have diverged"


def _identifier(column: str) -> str:
    return column if re.fullmatch(r"[A-Za-z_]\w*", column) else '"' + column.replace('"', '""') + '"'


def _name(row: Mapping[str, Any]) -> str:
    D, step = row["training_tokens"], row["training_step"]
    at = f" at {D:,} tokens" if D is not None else f" at step {step:,}" if step is not None else ""
    apart = "".join(f", {name} {row[name]:g}" for name in varied(row) if row[name] is not None)
    return f"{row['model'] or row['size']}{at}{apart}"


def _diverged(read: pa.Table) -> dict[int, tuple[str, int, int]]:
    """Run -> its loss, its last row, and the row of a lower loss with no more parameters and tokens."""
    given = read.select(["non_embedding_params", *_PROGRESS]).rename_columns(["S", "D", "C", "step"])
    of_run = (*(name for name in MODEL if name not in _PROGRESS), *varied(read.column_names))
    for name, numbers in (
        ("place", np.arange(read.num_rows)),
        ("of_group", codes(read, _GROUP)),
        ("run", codes(read, of_run)),
    ):
        given = given.append_column(name, pa.array(numbers))
    found: dict[int, tuple[str, int, int]] = {}
    for quantity in _LOSSES:
        rows = given.append_column("loss", read[quantity]).filter(pc.is_valid(read[quantity]))
        for one in select_among("given", rows, read_sql("diverged")).to_pylist() if rows.num_rows else ():
            found.setdefault(one["run"], (quantity, one["high"], one["low"]))
    return found
