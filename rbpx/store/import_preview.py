"""What an import brings, before it is written: observations in, a row for each text and quantity out."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.store.contradictions import codes
from rbpx.store.observations import MODEL, QUANTITIES

_RANGES = {"S": "non_embedding_params", "D": "training_tokens", "C": "training_flops", "step": "training_step"}


def preview(read: pa.Table, new: pa.Table) -> list[dict[str, Any]]:
    """One row for each family, text and quantity.

    Args:
        read: the observations of a file.
        new: those of them that are not in the store.

    Returns:
        family, dataset, quantity, rows, new, models (each training of a size once), runs (each of its checkpoints too),
        and the least and largest S, D (tokens), C (FLOPs) and step, null where unknown.
    """
    rows, is_new = [], np.isin(read["row"].to_numpy(), new["row"].to_numpy())
    for name in ("rbp", *QUANTITIES):
        has = pc.is_valid(read[name]).to_numpy()
        if not has.any():
            continue
        of, fresh = read.filter(pa.array(has)), is_new[has]
        groups = codes(of, ("family", "dataset"))
        for group in dict.fromkeys(groups.tolist()):
            rows.append(_row(of.filter(pa.array(groups == group)), name, int(fresh[groups == group].sum())))
    return sorted(rows, key=lambda row: (row["family"], row["dataset"]))


def _row(of: pa.Table, name: str, n_new: int) -> dict[str, Any]:
    row: dict[str, Any] = {"family": of["family"][0].as_py(), "dataset": of["dataset"][0].as_py(), "quantity": name}
    row |= {"rows": of.num_rows, "new": n_new}
    row |= {"models": len(np.unique(codes(of, ("family", "size", "model")))), "runs": len(np.unique(codes(of, MODEL)))}
    for label, column in _RANGES.items():
        ends = pc.min_max(of[column]).as_py()
        row |= {f"{label}_min": ends["min"], f"{label}_max": ends["max"]}
    return row
