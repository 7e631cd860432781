"""Items that are tried."""

import numpy as np

from rbpx.questions.attempts.passing import CountedItems


def counted(right: list[int], tried: int) -> CountedItems:
    """Items of which so many of as many attempts were right."""
    return CountedItems(tuple(map(str, range(len(right)))), np.array(right), np.full(len(right), tried))
