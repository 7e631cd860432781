"""Finds imported runs whose loss at their end is far above that of a run with no more parameters and tokens.

More parameters or tokens cannot cost that much: such a run diverged, or is of another text or unit.

Shapes: R rows of a group, E ends of its runs.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.imports import ImportConfig
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.columns import Columns
from rbpx.store.imports.identity import codes
from rbpx.store.imports.observations import MODEL
from rbpx.store.schema import varied

_FACTOR: Final = 1.5  # of the lower loss: of published tables only sweeps of the learning rate have such runs
_LEAST: Final = 0.5  # nats or bits, for losses near 0
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
    """A column in SQL."""
    return column if re.fullmatch(r"[A-Za-z_]\w*", column) else '"' + column.replace('"', '""') + '"'


def _name(row: Mapping[str, Any]) -> str:
    D, step = row["training_tokens"], row["training_step"]
    at = f" at {D:,} tokens" if D is not None else f" at step {step:,}" if step is not None else ""
    apart = "".join(f", {name} {row[name]:g}" for name in varied(row) if row[name] is not None)
    return f"{row['model'] or row['size']}{at}{apart}"


def _diverged(read: pa.Table) -> dict[int, tuple[str, int, int]]:
    """Run -> its loss, its last row, and the row of a lower loss with no more parameters and tokens."""
    S, D, C, step = (_floats(read, name) for name in ("non_embedding_params", *_PROGRESS))
    of_group = codes(read, _GROUP)
    of_run = codes(read, [*(name for name in MODEL if name not in _PROGRESS), *varied(read.column_names)])
    found: dict[int, tuple[str, int, int]] = {}
    for quantity in _LOSSES:
        loss = _floats(read, quantity)
        for group in np.unique(of_group[np.isfinite(loss)]):
            at = np.flatnonzero((of_group == group) & np.isfinite(loss))
            known = (each[at] for each in (D, C / (6 * S), step) if np.isfinite(each[at]).any())
            for end, than in _far_above(S[at], next(known, np.zeros(len(at))), loss[at], of_run[at]):
                found.setdefault(int(of_run[at[end]]), (quantity, int(at[end]), int(at[than])))
    return found


def _far_above(
    S_R: npt.NDArray[np.float64],
    progress_R: npt.NDArray[np.float64],
    loss_R: npt.NDArray[np.float64],
    run_R: npt.NDArray[np.int64],
) -> Iterator[tuple[int, int]]:
    """Ends of runs with the lowest of the rows that had no more, where it is far below."""
    order = np.lexsort((progress_R, run_R))
    is_last = np.append(np.diff(run_R[order]) != 0, True)
    ends_E = order[is_last]
    first_E = np.append(0, np.flatnonzero(is_last)[:-1] + 1)
    for end, first, last in zip(ends_E, first_E, np.flatnonzero(is_last), strict=True):
        less = ends_E[(S_R[ends_E] <= S_R[end]) & (progress_R[ends_E] <= progress_R[end])]
        less = np.append(less, order[first : last + 1])
        than = less[np.argmin(loss_R[less])]
        if loss_R[end] > max(_FACTOR * loss_R[than], loss_R[than] + _LEAST):
            yield int(end), int(than)


def _floats(read: pa.Table, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(read[name].cast(pa.float64(), safe=False).to_numpy(), float)
