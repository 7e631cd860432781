"""The searches of a fit of a surface, as a problem that fits of one form at the same points solve as one."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.arrays import Floats
from rbpx.laws.side_by_side import Problem
from rbpx.laws.surface.form import Form
from rbpx.laws.surface.names import Objective
from rbpx.laws.surface.runs import Coordinates
from rbpx.laws.surface.solve import POINT, End, Found, minimise

_MOST_DERIVATIVES: Final = 2**22  # of all searches at once, 32 MiB: of 100 searches of a surface at 6,000 points


@dataclass(frozen=True, eq=False)
class Search(Problem):
    """The arguments of `minimise`; y_ref of the form does not matter to a search."""

    form: Form
    x: Coordinates
    objective: Objective
    delta: float
    ln_y_BN: Floats
    weight_BN: Floats
    start_BP: Floats
    fixed_P: NDArray[np.bool_]
    most_steps: int = 1000
    end: End = POINT

    def kind(self) -> Hashable:
        """What searches have in common that can be done as one."""
        u_N = self.x.d_N if self.x.u_N is None else self.x.u_N
        at = tuple(each.tobytes() for each in (self.x.s_N, self.x.d_N, u_N, self.fixed_P))
        return (self.form.name, self.objective, *at, self.x.ln_S_ref, self.x.ln_D_ref, self.most_steps, self.end)

    @staticmethod
    def solve(alike: Sequence["Search"]) -> list[Found]:
        """What each finds."""
        first, sizes = alike[0], [len(each.start_BP) for each in alike]
        ln_y_BN, weight_BN = (
            np.concatenate(
                [np.broadcast_to(rows_BN, (B, rows_BN.shape[1])) for rows_BN, B in zip(of, sizes, strict=True)]
            )
            for of in ([each.ln_y_BN for each in alike], [each.weight_BN for each in alike])
        )
        delta_B1 = np.repeat([each.delta for each in alike], sizes)[:, None]
        start_BP = np.concatenate([each.start_BP for each in alike])
        at_once = max(1, _MOST_DERIVATIVES // (start_BP.shape[1] * ln_y_BN.shape[1]))
        found = [
            minimise(
                first.form,
                first.x,
                first.objective,
                delta_B1[at : at + at_once],
                ln_y_BN[at : at + at_once],
                weight_BN[at : at + at_once],
                start_BP[at : at + at_once],
                first.fixed_P,
                first.most_steps,
                first.end,
            )
            for at in range(0, len(start_BP), at_once)
        ]
        ends = np.cumsum(sizes)[:-1]
        whole = (
            np.concatenate([getattr(each, name) for each in found]) for name in ("theta_BP", "total_B", "converged_B")
        )
        return [Found(*each) for each in zip(*(np.split(of, ends) for of in whole), strict=True)]
