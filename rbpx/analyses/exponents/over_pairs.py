"""The mean of a number over families and texts, with an interval for other families and other texts."""

from collections.abc import Hashable, Sequence

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, student_t

__all__ = ["mean_over"]


def mean_over(value_M: Sequence[float], families: Sequence[Hashable], texts: Sequence[Hashable]) -> Estimate:
    """The mean of M pairs of a family and a text, 95 % over both: two-way clusters.

    Pairs with the same family are off alike, and so are those with the same text. The variance is V_family + V_text -
    V_pair, each with G / (G - 1) for its G clusters, and not below either of the first two; Student's t has the degrees
    of freedom of the smaller number of clusters. A way with a single cluster says nothing of others and is left out.

    Returns:
        The mean; without an interval where there is one family and one text.

    Source:
        A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust Inference with Multiway Clustering, JBES 29, 2011.
    """
    value = np.asarray(value_M, dtype=np.float64)
    mean = float(value.mean())
    ways = [labels for labels in (families, texts) if len(set(labels)) > 1]
    if not ways:
        return Estimate(mean, None, None)
    variances = [_clustered(value - mean, labels) for labels in ways]
    variance = max(variances)
    if len(ways) == 2:
        own = _clustered(value - mean, list(range(len(value))))
        variance = max(sum(variances) - own, variance)
    half = student_t(min(len(set(labels)) for labels in ways) - 1) * variance**0.5
    return Estimate(mean, mean - half, mean + half)


def _clustered(off_M: np.ndarray, labels: Sequence[Hashable]) -> float:
    """Variance of the mean where the members of a cluster are off alike."""
    clusters = list(dict.fromkeys(labels))
    sums = [sum(off for off, label in zip(off_M, labels, strict=True) if label == each) for each in clusters]
    G = len(clusters)
    return float(np.sum(np.square(sums))) * G / (G - 1) / len(off_M) ** 2
