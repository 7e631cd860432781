"""Whether exponents agree (verb exponents): compares the laws in S of each family and text, and averages over all.

The means have intervals for other families and other texts.
Source: RBP paper (arXiv 2510.20387), table 2 and section 5, which finds those of cross-entropy and -ln RBP_1 alike.
Shapes: N sizes, D documents, B resamples, K ranks, M pairs of a family and a text.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.groups.group import Group
from rbpx.groups.points.sizes import Points, known_points
from rbpx.laws.in_k import fit_joint_law
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Resampled, by_name, student_t
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import fit_power_law
from rbpx.status import Status
from rbpx.store.sql.queries import ask
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
UP_TO: Final = 100  # k: beyond it published laws bend towards the vocabulary
_CE: Final = "CE"
_COLUMNS: Final = ("dataset", "family", "k", "slope")  # of published slopes


def mean_over(value_M: Sequence[float], families: Sequence[Hashable], texts: Sequence[Hashable]) -> Estimate:
    """The mean over M pairs of a family and a text, with a 95 % interval over both: two-way clusters.

    Pairs of one family are off alike, and so are pairs of one text. The variance is V_family + V_text - V_pair, each
    times G / (G - 1) for its G clusters, and not below either of the first two; Student's t has one degree of freedom
    fewer than the smaller number of clusters. A way with a single cluster says nothing of others and is left out.

    Returns:
        The mean; without an interval for one family and one text.

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
    clusters = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    sums_G, G = np.bincount([clusters[label] for label in labels], off_M), len(clusters)
    return float(np.sum(np.square(sums_G))) * G / (G - 1) / len(off_M) ** 2


@dataclass(frozen=True)
class OfTokens:
    """The difference of the exponents among all tokens, or among those of some ids.

    Attributes:
        tokens: "improving" or "others"; None for all tokens.
        share: their share of all tokens; None for all tokens.
        alpha_cross_entropy: exponent of their cross-entropy.
        difference: exponent of their -ln RBP_1 minus that, with an interval over documents and models.
    """

    tokens: str | None
    share: float | None
    alpha_cross_entropy: float | None
    difference: Estimate


@dataclass(frozen=True)
class Pair:
    """One family on one text.

    Attributes:
        names: what its runs have in common, by column; from a file family and dataset alone.
        title: the text, with what tells its runs from others of that family and text.
        whole: its exponents, of all tokens.
        alphas: exponents of -ln RBP_k, by k.
        drift: change of alpha per unit of ln k, up to k = 100; None below two k.
        classes: the exponents among the tokens that improve, and among the others; empty where tokens are unknown.
    """

    names: Mapping[str, Any]
    title: str
    whole: OfTokens
    alphas: dict[int, float]
    drift: Estimate
    classes: tuple[OfTokens, ...] = ()


@dataclass(frozen=True, eq=False)
class Exponents:
    """The pairs of families and texts, and the means over them; `group` is the first, None for a file."""

    group: Group | None
    pairs: tuple[Pair, ...]
    difference: Estimate
    drift: Estimate
    status: Status
    run_ids: tuple[str, ...] = ()


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Exponents]:
    """Compare the exponents of each group, then average over the groups that know both."""
    pairs = [(group, pair) for group in groups if (pair := _pair(connection, group, request)) is not None]
    if not pairs:
        return []
    run_ids = tuple(run_id for group, _ in pairs for run_id in group.run_ids)
    return [_averaged(pairs[0][0], [pair for _, pair in pairs], run_ids)]


def _averaged(group: Group | None, pairs: Sequence[Pair], run_ids: tuple[str, ...] = ()) -> Exponents:
    mean, drift = _mean(pairs, [p.whole.difference for p in pairs]), _mean(pairs, [p.drift for p in pairs])
    status = Status.ok if mean.leaves_out_0 else Status.no_trend
    return Exponents(group, tuple(pairs), mean, drift, status, run_ids)


def _mean(pairs: Sequence[Pair], estimates: Sequence[Estimate]) -> Estimate:
    """The mean over families and texts; a single pair keeps its own interval."""
    if len(pairs) == 1:
        return estimates[0]
    known = [(e.value, *_of(p)) for p, e in zip(pairs, estimates, strict=True) if e.value is not None]
    return mean_over(*zip(*known, strict=True)) if known else NO_ESTIMATE


def _of(pair: Pair) -> tuple[str, str]:
    return pair.names["family"], pair.names["dataset"]


def _pair(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Pair | None:
    points = known_points(connection, group, request, ("rbp", "cross_entropy"), DEFAULT_K)
    points = [each for each in points if _usable(each)]
    of_k = {p.k: p for p in points if p.law == "rbp" and p.k is not None}
    loss = next((p for p in points if p.law == "cross_entropy"), None)
    one = of_k.get(1)
    if loss is None or one is None or one.runs != loss.runs:
        return None
    ratio = one.over(loss)
    difference = fit_power_law(ratio.S_N, ratio.y_N, ratio.resampled, backtests=False).exponent
    alphas = {k: _slope(p) for k, p in of_k.items()}
    drift = _drift([of_k[k] for k in sorted(of_k) if k <= UP_TO and of_k[k].runs == one.runs])
    classes = _classes(connection, group, request) if group.is_measured and group.n_resampled > 1 else ()
    whole = OfTokens(None, None, _slope(loss), difference)
    return Pair(group.names(), group.title_of_text, whole, alphas, drift, classes)


def _slope(points: Points) -> float:
    """The exponent of the line through the logarithms."""
    return float(line(np.log(points.S_N), np.log(points.y_N))[1])


def _usable(points: Points) -> bool:
    known = np.all(np.isfinite(points.y_N)) and np.all(points.y_N > 0)
    return bool(known) and len(set(points.S_N)) >= 3 and points.doubt in (None, Status.one_document)


def _drift(points: Sequence[Points]) -> Estimate:
    """The change of alpha per unit of ln k; an interval from 3 k on."""
    if len(points) < 2:
        return NO_ESTIMATE
    ks = [p.k for p in points if p.k is not None]
    if len(ks) < 3:
        return Estimate(_change(ks, list(map(_slope, points))))
    resampled = [p.y_BN for p in points if p.y_BN is not None]
    y_NBK = np.stack(resampled, axis=-1).transpose(1, 0, 2) if len(resampled) == len(points) else None
    y_NK, n_documents = np.column_stack([p.y_N for p in points]), points[0].n_documents
    joint = fit_joint_law(points[0].S_N, ks, y_NK, y_NBK, n_documents)
    return NO_ESTIMATE if joint is None else joint.drift


def _change(ks: Sequence[int], alphas: Sequence[float]) -> float:
    """Slope of the line through alpha against ln k."""
    return -float(line(np.log(ks), alphas)[1])


def _classes(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> tuple[OfTokens, ...]:
    """The tokens whose ids `improve` finds to get better, and all others."""
    S, run_ids = [run.non_embedding_params for run in group.runs], [run.run_id for run in group.runs]
    asked = {"run_ids": run_ids, "ln_sizes": [math.log(size) for size in S], "ties": group.ties.value}
    rows = ask(connection, "improvements", k=1, **asked).to_pylist()
    named = [row["token_id"] for row in rows if _improves(row)]
    if not named or len(named) == len(rows):
        return ()
    sums_23ND = _class_sums(connection, group, named)
    weights_BD = group.weights(request)
    classes, total = [], float(sums_23ND[:, 0, 0].sum())
    for name, by_document in zip(("improving", "others"), sums_23ND, strict=True):
        n_BN, hits_BN, nats_BN = (weights_BD @ each.T for each in by_document)
        n_N, hits_N, nats_N = by_document.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):  # a resample without such a token is left out
            ratio_BN = neg_ln(np.clip(hits_BN / n_BN, 0.0, 1.0)) / (nats_BN / n_BN)
            ratio_N, loss_N = neg_ln(hits_N / n_N) / (nats_N / n_N), nats_N / n_N
        fit = fit_power_law(S, ratio_N, Resampled.of(ratio_BN, group.n_resampled), backtests=False)
        loss = fit_power_law(S, loss_N, backtests=False)
        classes.append(OfTokens(name, float(n_N[0]) / total, loss.alpha, fit.exponent))
    return tuple(classes)


def _class_sums(connection: duckdb.DuckDBPyConnection, group: Group, token_ids: Sequence[int]) -> Floats:
    """Tokens, hits and nats of the tokens of some ids, then of all others, by size and document: [2, 3, N, D]."""
    sums_23ND = np.zeros((2, 3, len(group.runs), group.n_documents or 0))
    for at, run in enumerate(group.runs):
        sums = ask(connection, "class_sums", run_id=run.run_id, token_ids=list(token_ids), ties=group.ties.value)
        which, doc_id = 1 - sums["named"].to_numpy().astype(int), sums["doc_id"].to_numpy()
        for row, name in enumerate(("n_tokens", "n_hits", "nats")):
            sums_23ND[which, row, at, doc_id] = sums[name].to_numpy()
    return sums_23ND


def _improves(row: Record) -> bool:
    """Whether the interval over documents of the slope of a token id lies below 0, as in `improve`."""
    stderr = row["slope_stderr"]
    return stderr is not None and row["slope"] + student_t(row["n_documents"] - 1) * stderr < 0


def analyse_file(path: Path, request: Request) -> Exponents:
    """Compare published slopes: rows of dataset, family, k (a number, or CE) and slope, which is -alpha.

    Raises:
        RbpxError: the file lacks a column, a row is invalid, or no pair has both k = 1 and CE.
    """
    table = read_table(path)
    missing = [name for name in _COLUMNS if name not in table.columns]
    if missing:
        raise RbpxError(f"{path} has no column {missing[0]}; give it the columns {', '.join(_COLUMNS)}")
    alphas: dict[tuple[str, str], dict[str, float]] = {}
    for row in table.rows:
        dataset, family, k, slope = (str(row.values.get(name)) for name in _COLUMNS)
        try:
            of_k, alpha = (_CE if k.upper() == _CE else str(int(k))), -float(slope)
        except ValueError:
            raise RbpxError(f"{row.place}: k={k}, slope={slope}; k is a number or CE, slope a number") from None
        alphas.setdefault((dataset, family), {})[of_k] = alpha
    pairs = [_published(*names, of_k) for names, of_k in alphas.items() if _CE in of_k and "1" in of_k]
    if not pairs:
        raise RbpxError(f"no family and text in {path} has both k=1 and CE; add such rows")
    return _averaged(None, pairs)


def _published(dataset: str, family: str, of_k: dict[str, float]) -> Pair:
    alphas = {int(k): alpha for k, alpha in of_k.items() if k != _CE}
    ks = [k for k in sorted(alphas) if k <= UP_TO]
    drift = _change(ks, [alphas[k] for k in ks]) if len(ks) > 1 else None
    whole = OfTokens(None, None, of_k[_CE], Estimate(alphas[1] - of_k[_CE]))
    return Pair({"family": family, "dataset": dataset}, dataset, whole, alphas, Estimate(drift))


def records(result: Exponents) -> list[Record]:
    """A row for each pair of a family and a text, one for each kind of its tokens, and one for the means."""
    rows: list[Record] = []
    for pair in result.pairs:
        family, dataset = _of(pair)
        names: Record = {"family": family, "dataset": dataset, **pair.names}
        about: Record = names | {"alpha_cross_entropy": pair.whole.alpha_cross_entropy}
        about |= {f"alpha_{k}": alpha for k, alpha in pair.alphas.items()}
        rows.append({"kind": "pair", **about, **by_name(difference=pair.whole.difference, drift=pair.drift)})
        for each in pair.classes:
            rows.append({"kind": "tokens", **names, **vars(each), **by_name(difference=each.difference)})
    means = by_name(difference=result.difference, drift=result.drift)
    n = {"n_pairs": len(result.pairs), "status": result.status.value, "run_ids": list(result.run_ids)}
    return [*rows, {"kind": "mean", "family": None, "dataset": None, **means, **n}]
