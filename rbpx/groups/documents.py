"""Documents as they are resampled: which of them are of one text, and whether neighbours in their source are alike.

Documents that were cut from one text, or made of one, depend on each other, and are drawn together. What else belongs
together, as the works of an author, is known to nobody here; where such documents are neighbours in their source, a
test of their losses in its order shows it.

Shapes: D documents, U units (documents, or the texts that several of them were cut from), B resamples.

Whether the members of a series are like their neighbours, and how much more their sum varies for it.

From SQL by document to points: a mean over tokens for each run of a group, and under resamples of its documents.

Shapes: N runs, B resamples, D documents.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr, ndtri

from rbpx.config.request import Request
from rbpx.counts import number_of
from rbpx.groups.group import Group
from rbpx.groups.points.token_ranks import document_ranks
from rbpx.laws.intervals.bootstrap import document_weights
from rbpx.laws.intervals.estimate import Z, document_t
from rbpx.laws.numeric.arrays import Floats
from rbpx.store.sql.queries import ask

_LAGS: Final = (4.0, 100.0, 2 / 9)  # c (n / m)^p lags of n members


def neighbours_p(value_N: Floats) -> float:
    """How probable neighbours as alike as these would be, were the order of the members a matter of chance.

    The statistic is von Neumann's ratio of the ranks r, sum (r_i+1 - r_i)^2 / sum (r_i - mean)^2, which no distribution
    of the values changes: near 2 by chance, small where neighbours are alike. One-sided, by its normal approximation.

    Args:
        value_N: at least 3, not all equal.

    Source:
        R. Bartels, The Rank Version of von Neumann's Ratio Test for Randomness, JASA 77 (1982), 40.
    """
    _, place_N, n_equal_R = np.unique(value_N, return_inverse=True, return_counts=True)
    rank_N = (np.cumsum(n_equal_R) - (n_equal_R - 1) / 2)[place_N]  # of equal ones the mean
    n, about_N = len(rank_N), rank_N - rank_N.mean()
    ratio = float((np.diff(rank_N) ** 2).sum() / (about_N @ about_N))
    variance = 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return float(ndtr((ratio - 2) / math.sqrt(variance)))


def variance_factor(value_N: Floats) -> float:
    """How many times as much as that of independent members the sum of a series varies; at least 1.

    Args:
        value_N: in order, with mean 0.

    Source:
        W. K. Newey and K. D. West, A Simple, Positive Semi-definite, Heteroskedasticity and Autocorrelation Consistent
        Covariance Matrix, Econometrica 55 (1987), 703; lags as in Review of Economic Studies 61 (1994), 631.
    """
    c, m, power = _LAGS
    n_lags = min(int(c * (len(value_N) / m) ** power), len(value_N) - 1)
    lags = range(1, n_lags + 1)
    alike = sum((1 - lag / (n_lags + 1)) * float(value_N[lag:] @ value_N[:-lag]) for lag in lags)
    return max(1 + 2 * alike / float(value_N @ value_N), 1.0)


if TYPE_CHECKING:
    from rbpx.groups.group import Group

G = TypeVar("G", bound="Group")

_SIGNIFICANT: Final = 0.01  # each text is tested twice
_FEWEST: Final = 20  # units whose order is tested
_MORE: Final = "Cut it into longer documents, or measure more texts."
_CUT: Final = (
    "Where several are of one file or author, give these as one text, cut it (dataset.chunk) and measure it in a store "
    "of its own: what is cut from one text is resampled together."
)
_NARROW: Final = Z / float(ndtri(0.95))  # an interval of 95 % over one of 90 %


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a text, for resampling.

    Attributes:
        unit_D: number of the unit that a document is of.
        n: units with a token.
        dependence: how many times as much as independent ones units vary together whose neighbours in the source are
            alike; 1 where no dependence shows.
        is_one_text: whether all are parts of one text; then each is a unit.
    """

    unit_D: npt.NDArray[np.int64]
    n: int
    dependence: float = 1.0
    is_one_text: bool = False

    @classmethod
    def alone(cls, n: int) -> "Documents":
        """Each document is a unit."""
        return cls(np.arange(n), n)

    def weights(self, n_resamples: int, seed: int) -> Floats:
        """How often each document is drawn in each resample, [B, D]; those of one unit as often."""
        weights_BU = document_weights(int(self.unit_D.max()) + 1, n_resamples, seed).astype(np.float64)
        return weights_BU if weights_BU.shape[1] == len(self.unit_D) else weights_BU[:, self.unit_D]

    @property
    def notes(self) -> list[str]:
        """What is to be said of them, a line each."""
        lines, are_texts = [], self.unit_D.max() + 1 < len(self.unit_D)
        units, documents = number_of(self.n, "text" if are_texts else "document"), f"{len(self.unit_D):,} documents"
        if are_texts:
            lines.append(f"Resampled: {units}, of which the {documents} are parts; those of one text together.")
        if self.is_one_text:
            lines.append(
                f"The {documents} are parts of one text: intervals are over other parts, not over other texts."
            )
        if self.dependence > 1:
            n, remedy = max(round(self.n / self.dependence), 1), _MORE if self.is_one_text else _CUT
            lines.append(
                f"Neighbours in the source are alike (p < {_SIGNIFICANT}): {units} vary as about {n:,} independent "
                f"ones would, so intervals over documents are too narrow. {remedy}"
            )
        return lines

    def leave_too_narrow(self, half_width: float, variance: float) -> bool:
        """Whether an interval of 95 % is one of less than 90 % where documents depend on each other as these do.

        Args:
            half_width: of the interval, with the documents as if they were independent.
            variance: over them.
        """
        more = (self.dependence - 1) * document_t(self.n) ** 2 * variance
        return math.sqrt(half_width**2 + more) > _NARROW * half_width


def with_documents(connection: duckdb.DuckDBPyConnection, group: G, tests_order: bool) -> G:
    """A measured group with its documents as they are resampled; any other one as it is.

    Args:
        connection: to the store.
        group: runs on one text.
        tests_order: whether neighbours in the source are compared; costs a count of two runs, which laws need anyway.
    """
    if not group.is_measured:
        return group
    rows = ask(connection, "document_units", run_id=group.runs[0].run_ids[0])
    if len(rows) != group.n_documents:
        return group
    names, is_scored_D = rows["text"].to_pylist(), rows["has_tokens"].to_numpy(zero_copy_only=False)
    is_one_text = len(set(names)) == 1 < len(names)
    names = rows["source_id"].to_pylist() if is_one_text else names
    units = list(dict.fromkeys(names))
    number = {name: at for at, name in enumerate(units)}
    unit_D = np.array([number[name] for name in names])
    is_scored_U = np.bincount(unit_D, is_scored_D) > 0
    documents = Documents(unit_D, int(is_scored_U.sum()), is_one_text=is_one_text)
    if tests_order and documents.n >= _FEWEST:
        order_U = np.array(sorted(range(len(units)), key=lambda at: _natural(units[at])))
        series = _losses(connection, group, unit_D)[:, order_U[is_scored_U[order_U]]]
        alike = [each_U for each_U in series if np.ptp(each_U) > 0 and neighbours_p(each_U) < _SIGNIFICANT]
        documents = replace(documents, dependence=max(map(variance_factor, alike), default=1.0))
    return replace(group, documents=documents)


def _natural(name: str) -> list[Any]:
    """A key by which row 9 comes before row 10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d+)", name))]


def _losses(connection: duckdb.DuckDBPyConnection, group: "Group", unit_D: npt.NDArray[np.int64]) -> Floats:
    """How far each unit moves ln of the loss, at the mean of the first and the last run and from one to the other."""
    moved = []
    for run in (group.runs[0], group.runs[-1]):
        counts = document_ranks(connection, run.run_id, group.ties)
        unit = unit_D[counts["doc_id"].to_numpy()]
        n_U, nats_U = (
            np.bincount(unit, counts[name].to_numpy(), int(unit_D.max()) + 1) for name in ("n_tokens", "sum_logprob")
        )
        moved.append(nats_U / nats_U.sum() - n_U / n_U.sum())
    return np.array([moved[0] + moved[1], moved[1] - moved[0]])


def means(group: Group, request: Request, counted: pa.Table, total: str, n: str) -> tuple[Floats, Floats]:
    """The ratio of two sums over the documents of each run.

    Args:
        group: of measured runs.
        request: how many resamples, and their seed, which all questions share.
        counted: run_id, doc_id and two columns to sum; documents without a token, which are drawn too, have no row.
        total: the column above.
        n: the column below.

    Returns:
        The mean of each run, shape [N], and under each resample, the same documents for all runs, shape [B, N]; NaN
        where no drawn document has a token.
    """
    weights_BD = group.weights(request)
    sums = np.zeros((2, weights_BD.shape[1], len(group.runs)))
    for at, run in enumerate(group.runs):
        of_run = counted.filter(pc.equal(counted["run_id"], run.run_id))
        doc_id = of_run["doc_id"].to_numpy()
        for which, column in enumerate((total, n)):
            sums[which, doc_id, at] = of_run[column].to_numpy()
    above_DN, below_DN = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return above_DN.sum(axis=0) / below_DN.sum(axis=0), (weights_BD @ above_DN) / (weights_BD @ below_DN)
