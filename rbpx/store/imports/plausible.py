"""Finds rows of imported results whose values cannot be true together."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.spelling import typed
from rbpx.store.imports.columns import OF_ITEM, Columns
from rbpx.store.imports.faults import Faults

Fields = dict[str, pa.Array]
_FACTOR: Final = 3.0  # tolerated ratio of stated FLOPs to 6 S D: attention, the head, and ways of counting


def check_sizes(fields: Fields, columns: Columns, faults: Faults) -> None:
    """Refuse active parameters above S, and FLOPs far from 6 N D for each possible number of parameters N.

    N may be S, the active parameters of a routed model, or all parameters.
    """
    names = ("non_embedding_params", "active_params", "total_params", "training_tokens", "training_flops")
    S, active, total, D, C = (
        pc.cast(fields[name], pa.float64(), safe=False).to_numpy(zero_copy_only=False) for name in names
    )
    above = f"{columns.shown('active_params')} is above S, of which a token uses all or a part"
    faults.add(np.flatnonzero(active > S), above)
    known = np.isfinite(C / (S * D))
    apart = known.copy()
    for params in (S, active, total):
        ratio = C / (6 * params * D)
        apart &= ~((ratio >= 1 / _FACTOR) & (ratio <= _FACTOR))

    def text(row: int) -> str:
        counts = (("S", S), ("active_params", active), ("all parameters", total))
        told = [f"6 times {name} times D is {6 * n[row] * D[row]:.4g}" for name, n in counts if np.isfinite(n[row])]
        return (
            f"{columns.shown('training_flops')} is {C[row]:.4g}, but {', '.join(told)}; they differ by more than a "
            "factor of 3: correct S, D or C, give active_params or total_params where those count, or leave C out"
        )

    def of_unit(row: int) -> str:
        times = float(f"{factor[row]:.3g}")
        unit = typed(columns={"S": {"column": columns.shown("non_embedding_params"), "times": "TIMES"}})
        return (
            f"{columns.shown('training_flops')} is {C[row]:.4g}, {times:,g} times 6 S D, and about as many times in "
            f"each of {apart.sum():,} rows, so the unit of S, D or C is wrong: correct it, or say it, as {unit}"
        )

    factor = C / (6 * S * D)
    is_of_unit = apart.sum() > 1 and (apart == known).all() and np.ptp(np.log(factor[known])) < np.log(_FACTOR)
    faults.add(np.flatnonzero(apart)[: 1 if is_of_unit else None], of_unit if is_of_unit else text)


def check_attempts(fields: Fields, columns: Columns, faults: Faults) -> None:
    """Refuse attempts without their item or one of their two counts, and more right attempts than attempts."""
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
