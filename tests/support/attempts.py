"""Items that are tried."""

import numpy as np

from rbpx.questions.attempts.passing import Counted


def counted(right: list[int], tried: int) -> Counted:
    """Items of which so many of as many attempts were right."""
    return Counted(tuple(map(str, range(len(right)))), np.array(right), np.full(len(right), tried))
