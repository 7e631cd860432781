"""Groups without checkpoints of too few sizes: a family whose sizes have a law is not listed again at each of them."""

import logging
from collections.abc import Sequence

from rbpx.counts import number_of
from rbpx.groups.group import ALIKE, Group


def with_enough_sizes(groups: Sequence[Group], least: int) -> list[Group]:
    """Groups without those of fewer sizes than a law needs, where the same family has them at another revision.

    These are checkpoints of some sizes, of which only their number is said.

    Args:
        groups: that a request selects, each of one revision.
        least: sizes of a law.
    """

    def place(group: Group) -> tuple[str, ...]:
        return tuple(str(getattr(group.first, name)) for name in ALIKE if name not in ("revision", "variant"))

    has_law = {place(group): group for group in groups if group.n_sizes >= least}
    kept = [group for group in groups if group.n_sizes >= least or place(group) not in has_law]
    for where, group in has_law.items():
        n = sum(len(each.runs) for each in groups if place(each) == where and each.n_sizes < least)
        if n:
            logging.getLogger(__name__).warning(
                f"{group.title}: {number_of(n, 'checkpoint')} of revisions with fewer than {least} sizes left out; for "
                "laws along their tokens or compute add axis=D or axis=C, or ask surface"
            )
    return kept
