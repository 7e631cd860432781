"""Fits laws in size to the share of windows of hits: one law for each window length N, or the joint law for all N.

p_{N,k} is the share of windows of N consecutive tokens that are all hits, ranks at most k. If hits were independent
with -ln RBP_k = C S^(-alpha), then -ln p_{N,k} = C N S^(-alpha).
Shapes: M sizes, N window lengths, B resamples of the documents, P points, each one size and one window length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import Estimate, Replicates, around, few_documents, half_width, moments
from rbpx.laws.numeric import Floats, exp_or_none, line, neg_ln
from rbpx.laws.power.intervals import Ends
from rbpx.laws.power.law import LawFit, PowerLaw, fit_power_law
from rbpx.status import Status

EQUATION: Final = "-ln p_N = C * N * S^(-alpha), ordinary least squares of ln(-ln p_N) - ln N on ln S, 0 < p_N < 1"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8"


@dataclass(frozen=True)
class JointConstant:
    """ln C at S_ref, the geometric mean of the sizes of the points, and its standard error."""

    S_ref: float
    ln_C_ref: float
    ln_C_ref_stderr: float


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowsFit(LawFit):
    """A law of windows of all lengths at once.

    Attributes:
        status: why there are no numbers, else what was said of them.
        n_left_out: points (a size and a window length) that were not fitted; n_points were.
        n_sizes: sizes of the points that were fitted.
        lengths: the window lengths.
        p_MN: the shares; NaN where there is no window.
        interval: what the intervals include, "documents and models" or "models"; None where there are none.
        reasons: every status that holds; empty before the law was judged.
    """

    status: Status
    n_left_out: int
    n_sizes: int
    lengths: Sequence[int]
    p_MN: Floats
    interval: str | None = None
    reasons: tuple[Status, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class JointFit(WindowsFit):
    """A law -ln p_N = C * N * S^(-alpha) for all window lengths at once; every number None unless status is ok.

    r2 is of ln(-ln p) against ln C + ln N - alpha ln S, with the total about the mean of ln(-ln p): it credits the law
    with ln N, which it does not fit. It may be negative. r2_p is the same of p against exp(-C N S^(-alpha)). Both are
    over the n_points that were fitted; n_left_out have p of 0 or 1, or no window.

    alpha_within is the exponent if every N has a constant of its own. It equals alpha where no point is left out. Else
    the small sizes lack their long windows, and alpha absorbs lack of fit in N; the difference of both shows this.

    The standard error of alpha takes the sizes as the units that scatter, not the points, as those of a size share its
    tokens. It is from the means of ln(-ln p) - ln N at each size, weighted by their points, with n_sizes - 2 degrees of
    freedom. With one window length it is that of `fit_power_law`. The intervals of alpha and C are about the number.
    None of them includes the law's lack of fit in N, which r2 shows, nor the effect of leaving out shares
    of 0, which `fit_pooled` keeps.

    Attributes:
        constant_at_ref: None without a fit.
        n_replicates: of the documents; None where there were none.
        n_replicates_left_out: those in which a share that was fitted is 0, 1 or NaN.
        n_documents: how many were resampled; None where they are not counted.
        document_22: covariance of (ln_C_ref, alpha) over documents; None where it is not known.
    """

    alpha_within: float | None = None
    r2_p: float | None = None
    constant_at_ref: JointConstant | None = None
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    n_documents: int | None = None
    document_22: Floats | None = None

    def record(self) -> dict[str, Any]:
        """What reproduces the fit, and what is known of it, as JSON takes it."""
        record: dict[str, Any] = {"S": list(self.S), "lengths": list(self.lengths), "p": listed(self.p_MN)}
        record |= {"interval": self.interval, "equation": EQUATION, "source": SOURCE}
        record |= {"C_lo": self.C.lo, "C_hi": self.C.hi, "r2_lnln": self.r2.value}
        record |= {name: getattr(self, name) for name in ("alpha_within", "r2_p", "n_left_out", "n_sizes")}
        record |= {} if self.constant_at_ref is None else vars(self.constant_at_ref)
        if self.n_replicates is not None:
            record |= {"n_resamples": self.n_replicates, "n_resamples_left_out": self.n_replicates_left_out}
        if self.document_22 is not None:
            record |= {"n_documents": self.n_documents, "document_covariance": self.document_22.tolist()}
        return record | {"reasons": [reason.value for reason in self.reasons]}


def fit_windows(
    S: ArrayLike, p: ArrayLike, p_replicates: ArrayLike | None = None, n_documents: int | None = None
) -> PowerLaw:
    """Fit -ln p_N = C_N * S^(-alpha_N) at one window length N, as figure 7 of the paper does.

    Args:
        S: non-embedding parameters, shape [M].
        p: measured share of windows of hits at each size, shape [M].
        p_replicates: the same under B replicates of the documents, shape [B, M].
        n_documents: how many were resampled; None where they are not counted.

    Returns:
        The fit of `fit_power_law`, C_N in nats and with N in it; not_positive if a p is 0, 1 or NaN.

    Raises:
        ValueError: as in `fit_power_law`, or if a p is not a share.

    Source:
        RBP paper (arXiv 2510.20387), eq. 8 and figure 7.
    """
    replicates = None if p_replicates is None else Replicates.of(neg_ln(p_replicates), n_documents)
    return fit_power_law(S, neg_ln(p), replicates)


def fit_joint(
    S: ArrayLike,
    lengths: Sequence[int],
    p_MN: ArrayLike,
    p_BMN: ArrayLike | None = None,
    n_documents: int | None = None,
) -> JointFit:
    """Fit -ln p_N = C * N * S^(-alpha) to all sizes and window lengths with 0 < p < 1, each point counting the same.

    Args:
        S: non-embedding parameters, shape [M], positive; equal ones are replicates, models of one size.
        lengths: window lengths N, tokens, shape [N], all different.
        p_MN: measured shares of windows of hits, shape [M, N]; may be 0, 1 or NaN.
        p_BMN: the same under B resamples of the documents, shape [B, M, N]. A resample in which a point that was
            fitted is 0, 1 or NaN is left out and counted. No interval if fewer than 20 are left.
        n_documents: how many were resampled; None where they are not counted.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes, not_positive if fewer than 3 sizes have a point,
        no_variation if all points have the same p. Intervals are Student's t for the scatter of the sizes, and with
        resamples also for what the documents add that all sizes share, as in `fit_power_law`.

    Raises:
        ValueError: if shapes disagree, sizes or lengths are impossible or repeat, or a p is not a share.

    Source:
        RBP paper (arXiv 2510.20387), eqs. 6-8.
    """
    S_M, N_N = checked(S, lengths, p_BMN, p_MN)
    y_MN, y_BMN = neg_ln(p_MN), None if p_BMN is None else neg_ln(p_BMN)
    used_MN = (y_MN > 0) & np.isfinite(y_MN)
    n_points, n_sizes = int(used_MN.sum()), int(used_MN.any(axis=1).sum())
    without = JointFit(
        n_points=n_points,
        n_left_out=used_MN.size - n_points,
        n_sizes=n_sizes,
        S=S_M.tolist(),
        lengths=lengths,
        p_MN=np.exp(-y_MN),
        status=Status.no_variation,
    )
    if (doubt := doubt_of_sizes(S_M, S_M[used_MN.any(axis=1)])) is not None:
        return replace(without, status=doubt)
    if np.ptp(y_MN[used_MN]) == 0:
        return without

    m_P, n_P = np.nonzero(used_MN)
    ln_S_P, ln_N_P, ln_y_P = np.log(S_M)[m_P], np.log(N_N)[n_P], np.log(y_MN[used_MN])
    ln_S_ref = float(ln_S_P.mean())
    x_P = ln_S_P - ln_S_ref
    line_2 = line(x_P, ln_y_P - ln_N_P)
    ln_fitted_P = line_2[0] + ln_N_P - line_2[1] * x_P
    variance = float(_squares(ln_y_P - ln_fitted_P, m_P)) / (n_sizes - 2)
    unit_22 = np.diag([1 / n_points, 1 / float(x_P @ x_P)])
    covariance_22 = variance * unit_22

    document_22, own, n_left_out = np.zeros((2, 2)), 0.0, 0
    interval = "models" if y_BMN is None else None
    if y_BMN is not None:
        y_BP = y_BMN[:, used_MN]
        y_BP = y_BP[np.all((y_BP > 0) & np.isfinite(y_BP), axis=1)]
        n_left_out, z_BP = len(y_BMN) - len(y_BP), np.log(y_BP) - ln_N_P
        documents = moments(line_2, line(x_P, z_BP), n_documents)
        if documents is not None:
            document_22 = documents.covariance_PP
            own = few_documents(n_documents) * _own(z_BP, x_P, m_P) / (n_sizes - 2)
            interval = "documents and models"

    def ends(of_2: Floats) -> Ends:
        """Interval of a linear combination of (ln_C_ref, alpha)."""
        if interval is None:
            return None, None
        unit = float(of_2 @ unit_22 @ of_2)
        shared = max(float(of_2 @ document_22 @ of_2) - own * unit, 0.0)
        half = half_width(shared, math.sqrt(variance), n_sizes - 2, math.sqrt(own), unit, n_documents)
        return around(float(of_2 @ line_2), half)

    # alpha, and ln C at S = 1, which is ln C_ref + alpha ln S_ref
    alpha_ends, ln_C_ends = ends(np.array([0.0, 1.0])), ends(np.array([1.0, ln_S_ref]))
    return replace(
        without,
        C=Estimate(*map(exp_or_none, (float(line_2[0] + line_2[1] * ln_S_ref), *ln_C_ends))),
        alpha=Estimate(float(line_2[1]), *alpha_ends, math.sqrt(covariance_22[1, 1])),
        alpha_within=_slope_within(n_P, ln_S_P, ln_y_P),
        r2=Estimate(_r2(ln_y_P, ln_fitted_P)),
        r2_p=_r2(np.exp(-y_MN[used_MN]), np.exp(-np.exp(ln_fitted_P))),
        status=Status.ok,
        constant_at_ref=JointConstant(math.exp(ln_S_ref), float(line_2[0]), math.sqrt(covariance_22[0, 0])),
        n_replicates=None if y_BMN is None else len(y_BMN),
        n_replicates_left_out=n_left_out,
        n_documents=n_documents,
        document_22=None if interval != "documents and models" else document_22,
        interval=interval,
    )


def doubt_of_sizes(S_M: Floats, of_points: Floats) -> Status | None:
    """Why sizes, or those of them that have a point, are too few for a law; None where they suffice."""
    if len(np.unique(S_M)) < 3:
        return Status.too_few_sizes
    return Status.not_positive if len(np.unique(of_points)) < 3 else None


def listed(values_MN: Floats) -> list[list[float | None]]:
    """Values by size and length, None where there is none, as JSON takes them."""
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values_MN]


def _slope_within(n_P: NDArray[np.intp], x_P: Floats, z_P: Floats) -> float | None:
    """Exponent with a constant of its own for each window length: x and z minus their means over its points."""
    if np.bincount(n_P).max() < 2:
        return None
    points_N = np.maximum(np.bincount(n_P), 1)
    x_P, z_P = (v_P - (np.bincount(n_P, weights=v_P) / points_N)[n_P] for v_P in (x_P, z_P))
    return -float(x_P @ z_P) / float(x_P @ x_P)


def _own(z_BP: Floats, x_P: Floats, m_P: NDArray[np.intp]) -> float:
    """Squares of the sizes about the law that the documents explain, summed as those of the fit are."""
    change_BP = z_BP - z_BP.mean(axis=0)
    fitted_B2 = line(x_P, change_BP)
    return float(_squares(change_BP - fitted_B2[:, :1] + fitted_B2[:, 1:] * x_P, m_P).mean())


def _squares(left_P: Floats, m_P: NDArray[np.intp]) -> Floats:
    """Sum of the squares of residuals, [P] or [B, P], that are summed within a size first.

    Their scatter is then that of the sizes, whatever the points of one size share.
    """
    points_M = np.bincount(m_P)
    summed_M = left_P @ np.eye(len(points_M))[m_P]
    return np.asarray((summed_M[..., points_M > 0] ** 2 / points_M[points_M > 0]).sum(axis=-1))


def _r2(measured_P: Floats, fitted_P: Floats) -> float:
    return 1 - float(np.sum((measured_P - fitted_P) ** 2) / np.sum((measured_P - measured_P.mean()) ** 2))


def checked(
    S: ArrayLike, lengths: Sequence[int], p_BMN: ArrayLike | None, *values_MN: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Sizes and window lengths as arrays.

    Args:
        S: sizes, shape [M].
        lengths: window lengths N.
        p_BMN: shares under resamples, shape [B, M, N]; None where there are none.
        values_MN: values by size and length, shape [M, N] each; None where there are none.

    Raises:
        ValueError: if sizes or lengths are impossible, lengths repeat, or the shape of a value does not match.
    """
    S_M, N_N = np.asarray(S, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    for name, values in (("sizes", S_M), ("window lengths", N_N)):
        if values.ndim != 1 or not np.all((values > 0) & np.isfinite(values)):
            raise ValueError(f"{name} must be positive, got {values.tolist()}")
    if len(np.unique(N_N)) != len(N_N):
        raise ValueError(f"window lengths must be all different, got {N_N.tolist()}")
    shapes, expected = [np.shape(each) for each in values_MN if each is not None], (len(S_M), len(N_N))
    shapes += [] if p_BMN is None else [np.shape(p_BMN)[1:]]
    if any(shape != expected for shape in shapes):
        raise ValueError(f"shares by size and window length have shapes {shapes}, expected {expected}")
    return S_M, N_N
