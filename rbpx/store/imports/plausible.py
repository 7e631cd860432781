"""Finds rows of imported results whose values cannot be true together, and says which is beyond which."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.cells import as_written
from rbpx.store.imports.cells import last_digit
from rbpx.store.imports.columns import OF_ITEM, Columns
from rbpx.store.imports.faults import Faults

Fields = dict[str, pa.Array]
_FACTOR: Final = 3.0  # by which stated FLOPs may differ from 6 S D: attention, the head, and how each source counts
_FLOAT32: Final = 2.0**-24  # relative, what a share may be off that was computed in single precision


def check_sizes(fields: Fields, columns: Columns, faults: Faults) -> None:
    """Refuse more active parameters than S, and FLOPs that are about 6 times no number of parameters times D.

    That number is S, the active ones of a routed model, or all parameters.
    """
    names = ("non_embedding_params", "active_params", "total_params", "training_tokens", "training_flops")
    S, active, total, D, C = (
        pc.cast(fields[name], pa.float64(), safe=False).to_numpy(zero_copy_only=False) for name in names
    )
    above = f"{columns.shown('active_params')} is above S, of which a token uses all or a part"
    faults.add(np.flatnonzero(active > S), above)
    apart = np.isfinite(C / (S * D))
    for params in (S, active, total):
        ratio = C / (6 * params * D)
        apart &= ~((ratio >= 1 / _FACTOR) & (ratio <= _FACTOR))

    def text(row: int) -> str:
        of_active = f", 6 times active_params times D is {6 * active[row] * D[row]:.4g}"
        of_total = f", and 6 times all parameters times D is {6 * total[row] * D[row]:.4g}"
        return (
            f"{columns.shown('training_flops')} is {C[row]:.4g}, but 6 S D is {6 * S[row] * D[row]:.4g}"
            f"{of_active if np.isfinite(active[row]) else ''}{of_total if np.isfinite(total[row]) else ''}; they "
            "differ by more than a factor of 3: correct S, D or C, give active_params where a token uses some "
            "experts, total_params where embeddings and head count, or leave C out"
        )

    faults.add(np.flatnonzero(apart), text)


def check_attempts(fields: Fields, columns: Columns, faults: Faults) -> None:
    """Refuse attempts without their item, or with one count of two, and more right attempts than there are."""
    has = {name: np.array(pc.is_valid(fields[name])) for name in OF_ITEM}
    sound = ~faults.rows(len(fields["item"]))
    for name in OF_ITEM:
        what = f"{columns.shown(name)} is empty; attempts need their item, n_samples and n_correct"
        faults.add(np.flatnonzero(sound & (has["n_samples"] | has["n_correct"]) & ~has[name]), what)
    n, c = (pc.fill_null(fields[name], 0).to_numpy(zero_copy_only=False) for name in ("n_samples", "n_correct"))
    of_c, of_n = columns.shown("n_correct"), columns.shown("n_samples")
    faults.add(
        np.flatnonzero(sound & has["n_samples"] & (c > n)),
        lambda row: (
            f"{of_c} is {c[row]:,}, but {of_n} is {n[row]:,}; no more can be right than were made: correct one of them"
        ),
    )


def check_counts(cells: Sequence[Any], name: str, share: pa.Array, n_tokens: pa.Array, faults: Faults) -> None:
    """Refuse shares that are no count of n_tokens: 0.333 of 10 lies between 3 and 4 of 10.

    A share is as exact as its last digit, rounded or cut off, and as single precision.
    """
    n = pc.fill_null(n_tokens, 0).to_numpy(zero_copy_only=False).astype(float)
    p = pc.fill_null(share, 0).to_numpy(zero_copy_only=False)
    off = np.abs(p - np.rint(p * n) / np.maximum(n, 1)) * (n > 0)
    rows = np.flatnonzero(off > np.maximum(_FLOAT32 * p, 2.0**-52))
    last_digits = np.array([last_digit(cells[row]) for row in rows.tolist()])

    def text(row: int) -> str:
        count = int(np.floor(p[row] * n[row]))
        return (
            f"{name} is {as_written(cells[row])}, which is no count of n_tokens={int(n[row]):,}: "
            f"{count:,} are {count / n[row]:.6g}, {count + 1:,} are {(count + 1) / n[row]:.6g}; correct one of them"
        )

    faults.add(rows[off[rows] > last_digits], text)
