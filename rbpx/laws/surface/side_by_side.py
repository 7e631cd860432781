"""Searches of many fits side by side: fits that ask for searches in, what each makes of them out.

A search of one fit takes its time for a few resamples that end late, and as long for one as for many. So a fit is a
generator, which yields each `Search` and is sent the `Found` of it, and the searches in which several fits of one form
at the same points are at one time are done as one.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.surface.form import Form
from rbpx.laws.surface.names import Objective
from rbpx.laws.surface.runs import Coordinates
from rbpx.laws.surface.solve import POINT, End, Found, minimise

__all__ = ["Search", "Searching", "alone", "together"]

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Search:
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

    @property
    def kind(self) -> tuple[str, ...]:
        """What searches have in common that can be done as one."""
        u_N = self.x.d_N if self.x.u_N is None else self.x.u_N
        at = b"".join(each.tobytes() for each in (self.x.s_N, self.x.d_N, u_N, self.fixed_P)).hex()
        references = (self.x.ln_S_ref.hex(), self.x.ln_D_ref.hex())
        return (self.form.name, self.objective, at, *references, str(self.most_steps), str(self.end))


Searching = Generator[Search, Found, T]
"""What yields searches, is sent what was found by each, and returns what it makes of them."""


def alone(searching: Searching[T]) -> T:
    """The result of one."""
    (result,) = together([searching])
    return result


def together(searching: Sequence[Searching[T]]) -> list[T]:
    """The results of several, in their order; each is what it is alone."""
    results: dict[int, T] = {}
    asked: dict[int, Search] = {}

    def advance(at: int, found: Found | None) -> None:
        try:
            asked[at] = next(searching[at]) if found is None else searching[at].send(found)
        except StopIteration as end:
            results[at] = end.value

    for at in range(len(searching)):
        advance(at, None)
    while asked:
        by_kind = sorted((search.kind, at) for at, search in asked.items())
        for _, members in groupby(by_kind, key=lambda each: each[0]):
            alike = [at for _, at in members]
            for at, found in zip(alike, _as_one([asked.pop(at) for at in alike]), strict=True):
                advance(at, found)
    return [results[at] for at in range(len(searching))]


def _as_one(searches: Sequence[Search]) -> list[Found]:
    """What each of several searches of one kind finds."""
    first, sizes = searches[0], [len(each.start_BP) for each in searches]
    ln_y_BN, weight_BN = (
        np.concatenate([np.broadcast_to(rows_BN, (B, rows_BN.shape[1])) for rows_BN, B in zip(of, sizes, strict=True)])
        for of in ([each.ln_y_BN for each in searches], [each.weight_BN for each in searches])
    )
    delta_B1 = np.repeat([each.delta for each in searches], sizes)[:, None]
    start_BP = np.concatenate([each.start_BP for each in searches])
    at = first.form, first.x, first.objective
    found = minimise(*at, delta_B1, ln_y_BN, weight_BN, start_BP, first.fixed_P, first.most_steps, first.end)
    ends = np.cumsum(sizes)[:-1]
    parts = (np.split(of, ends) for of in (found.theta_BP, found.total_B, found.converged_B))
    return [Found(*each) for each in zip(*parts, strict=True)]
