"""Compares the exponents of the laws in S of each family and text, and averages over all (verb exponents).

The means have intervals for other families, other texts and other models.
Source: RBP paper (arXiv 2510.20387), table 2 and section 5, which finds those of cross-entropy and -ln RBP_1 alike.
Shapes: N sizes, D documents, B resamples, K ranks, P pairs of a family and a text, M points of all pairs.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Resampled, around, by_name, half_width, student_t
from rbpx.laws.numeric import Floats, line, neg_ln
from rbpx.laws.power.law import fit_power_law
from rbpx.questions.exponents.pooled import Pooled, families, fit_records, pool
from rbpx.runs.fits import keep_fits
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
UP_TO: Final = 100  # k: beyond it published laws bend towards the vocabulary
_CE: Final = "CE"
_ROUNDING: Final = 1e-9  # of a degree of freedom
_COLUMNS: Final = ("dataset", "family", "k", "slope")  # of published slopes


def mean_over(
    value_P: Sequence[float],
    families: Sequence[Hashable],
    texts: Sequence[Hashable],
    points: Sequence[Points | None] = (),
) -> Estimate:
    """The mean over P pairs of a family and a text, with a 95 % interval over families, texts and models.

    Pairs of one family are off alike, and so are pairs of one text: two-way clusters. The variance between them is
    V_family + V_text - V_pair, each times G / (G - 1) for its G clusters, and not below either of the first two;
    Student's t has one degree of freedom fewer than the smaller number of clusters. A way with a single cluster says
    nothing of others and is left out. What all pairs have in common does not show between them; `_in_common` adds it.

    Args:
        value_P: the exponents.
        families: of each.
        texts: of each.
        points: whose exponents they are, None where only slopes are known. Then one family has no interval over texts,
            since what its models have in common on them is not known.

    Returns:
        The mean; without an interval for one family and one text.

    Source:
        A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust Inference with Multiway Clustering, JBES 29, 2011.
    """
    value = np.asarray(value_P, dtype=np.float64)
    mean, known = float(value.mean()), [each for each in points if each is not None]
    ways = [labels for labels in (families, texts) if len(set(labels)) > 1]
    if not ways or (len(known) < len(value) and len(set(families)) == 1):
        return Estimate(mean, None, None)
    variances = [_clustered(value - mean, labels) for labels in ways]
    variance = max(variances)
    if len(ways) == 2:
        own = _clustered(value - mean, list(range(len(value))))
        variance = max(sum(variances) - own, variance)
    squared = student_t(min(len(set(labels)) for labels in ways) - 1) ** 2 * variance
    if len(known) == len(value):
        squared += _in_common(known, ways, len(set(texts)) == 1)
    return Estimate(mean, *around(mean, squared**0.5))


def _in_common(points: Sequence[Points], ways: Sequence[Sequence[Hashable]], one_text: bool) -> float:
    """Square of the half width that the mean exponent has by what all pairs have in common.

    A model that is better than its law on one text is so on the others, and so are trainings of its size in other
    families. Its variance tau^2 is that of residuals at one size in pairs that differ in every way, r'Ar over its mean
    at tau^2 = 1; Student's t has Satterthwaite's degrees of freedom: N - 2 where all pairs have the same N sizes. The
    documents of a text are common too where it is the only one.
    """
    ln_S_M = np.log(np.concatenate([each.S_N for each in points]))
    pair_M = np.repeat(np.arange(len(points)), [len(each.S_N) for each in points])
    J_MP = np.hstack([(pair_M == at)[:, None] * np.column_stack([np.ones(len(ln_S_M)), ln_S_M]) for at in set(pair_M)])
    L_PM = np.linalg.pinv(J_MP)
    influence_M, rest_MM = L_PM[1::2].mean(axis=0), np.eye(len(ln_S_M)) - J_MP @ L_PM
    same_MM = ln_S_M[:, None] == ln_S_M
    labels = [np.unique(list(map(str, way)), return_inverse=True)[1][pair_M] for way in ways]
    apart_MM = same_MM & np.logical_and.reduce([of_M[:, None] != of_M for of_M in labels])
    spread_MM = apart_MM @ rest_MM @ same_MM @ rest_MM
    expected, squared = float(np.trace(spread_MM)), 0.0
    if expected > _ROUNDING:
        residual_M = rest_MM @ np.log(np.concatenate([each.y_N for each in points]))
        tau2 = max(float(residual_M @ apart_MM @ residual_M) / expected, 0.0)
        dof = expected**2 / float(np.sum(spread_MM * spread_MM.T))
        squared = student_t(dof) ** 2 * tau2 * float(influence_M @ same_MM @ influence_M)
    drawn = [each.y_BN for each in points if each.y_BN is not None]
    if one_text and len(drawn) == len(points):
        resampled = Resampled.of(np.concatenate(drawn, axis=1), points[0].n_documents)
        if resampled.suffices:
            shared = float(resampled.covariance_of(influence_M[None])[0, 0])
            squared += half_width(shared, n_documents=points[0].n_documents) ** 2
    return squared


def _clustered(off_P: Floats, labels: Sequence[Hashable]) -> float:
    """Variance of the mean where the members of a cluster are off alike."""
    clusters = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    sums_G, G = np.bincount([clusters[label] for label in labels], off_P), len(clusters)
    return float(np.sum(np.square(sums_G))) * G / (G - 1) / len(off_P) ** 2


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
        points: the quantities whose exponents are the difference and the drift; None where it has no such points.
        classes: the exponents among the tokens that improve, and among the others; empty where tokens are unknown.
    """

    names: Mapping[str, Any]
    title: str
    whole: OfTokens
    alphas: dict[int, float]
    drift: Estimate
    points: tuple[Points | None, Points | None] = (None, None)
    classes: tuple[OfTokens, ...] = ()


@dataclass(frozen=True, eq=False)
class Exponents:
    """The pairs of families and texts, the means over them, and the families that share a text.

    Attributes:
        group: the runs of all; None for a file.
        pairs: those that know RBP_1 and cross-entropy.
        difference: mean over the pairs.
        drift: mean over the pairs.
        status: whether the mean difference can be told from 0.
        pooled: of each text that several families were measured on alike.
        run_ids: of the pairs.
    """

    group: Group | None
    pairs: tuple[Pair, ...]
    difference: Estimate
    drift: Estimate
    status: Status
    pooled: tuple[Pooled, ...] = ()
    run_ids: tuple[str, ...] = ()


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Exponents]:
    """Compare the exponents of each group, average over the groups that know both, and pool families on one text."""
    known = [(group, _points(connection, group, request)) for group in groups]
    paired = [(group, pair) for group, of in known if (pair := _pair(connection, group, of, request)) is not None]
    pooled = pool(known)
    if not paired and not pooled:
        return []
    of_all = families([group for group, _ in paired] or [group for each in pooled for group in each.groups])
    run_ids = [run_id for group, _ in paired for run_id in group.run_ids]
    return [replace(_averaged(of_all, [pair for _, pair in paired]), pooled=tuple(pooled), run_ids=tuple(run_ids))]


def _points(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[Points]:
    """The points of the laws that can be fitted."""
    points = known_points(connection, group, request, ("rbp", "cross_entropy"), DEFAULT_K)
    return [each for each in points if _usable(each)]


def _averaged(group: Group | None, pairs: Sequence[Pair]) -> Exponents:
    of_difference = [(pair, pair.whole.difference, pair.points[0]) for pair in pairs]
    mean, drift = _mean(of_difference), _mean([(pair, pair.drift, pair.points[1]) for pair in pairs])
    status = Status.ok if mean.leaves_out_0 else Status.no_trend
    return Exponents(group, tuple(pairs), mean, drift, status)


def _mean(estimates: Sequence[tuple[Pair, Estimate, Points | None]]) -> Estimate:
    """The mean over families and texts; a single pair keeps its own interval."""
    if len(estimates) == 1:
        return estimates[0][1]
    known = [(each.value, *_of(pair), points) for pair, each, points in estimates if each.value is not None]
    return mean_over(*zip(*known, strict=True)) if known else NO_ESTIMATE


def _of(pair: Pair) -> tuple[str, str]:
    return pair.names["family"], pair.names["dataset"]


def _pair(
    connection: duckdb.DuckDBPyConnection, group: Group, points: Sequence[Points], request: Request
) -> Pair | None:
    of_k = {p.k: p for p in points if p.law == "rbp" and p.k is not None}
    loss = next((p for p in points if p.law == "cross_entropy"), None)
    one = of_k.get(1)
    if loss is None or one is None or one.runs != loss.runs:
        return None
    ratio = one.over(loss)
    alphas = {k: _slope(p) for k, p in of_k.items()}
    in_k = _in_k([of_k[k] for k in sorted(of_k) if k <= UP_TO and of_k[k].runs == one.runs])
    classes = _classes(connection, group, request) if group.is_measured and group.n_resampled > 1 else ()
    whole = OfTokens(None, None, _slope(loss), _exponent(ratio))
    return Pair(group.names(), group.title_of_text, whole, alphas, _exponent(in_k), (ratio, in_k), classes)


def _exponent(points: Points | None) -> Estimate:
    """The exponent of the law of some points, with its interval over documents and models."""
    if points is None:
        return NO_ESTIMATE
    return fit_power_law(points.S_N, points.y_N, points.resampled, backtests=False).exponent


def _slope(points: Points) -> float:
    """The exponent of the line through the logarithms."""
    return float(line(np.log(points.S_N), np.log(points.y_N))[1])


def _usable(points: Points) -> bool:
    known = np.all(np.isfinite(points.y_N)) and np.all(points.y_N > 0)
    return bool(known) and len(set(points.S_N)) >= 3 and points.doubt in (None, Status.one_document)


def _in_k(points: Sequence[Points]) -> Points | None:
    """The quantity whose exponent in S is the change of alpha per unit of ln k: exp of the slope of ln y in ln k."""
    if len(points) < 2:
        return None
    of_K = _slope_in_k([p.k for p in points if p.k is not None])
    drawn = [p.y_BN for p in points if p.y_BN is not None]
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample with a share of 0 or 1 is left out
        y_BN = np.exp(np.log(np.stack(drawn, axis=-1)) @ of_K) if len(drawn) == len(points) else None
    return replace(points[0], y_N=np.exp(np.log(np.column_stack([p.y_N for p in points])) @ of_K), y_BN=y_BN)


def _slope_in_k(ks: Sequence[int]) -> Floats:
    """What each k adds to the slope of the line in ln k."""
    return np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(ks)), np.log(ks)]))[1])


def _classes(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> tuple[OfTokens, ...]:
    """The tokens whose ids `learning` finds to get better, and all others."""
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
    """Whether the interval over documents of the slope of a token id lies below 0, as in `learning`."""
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
    drift = float(_slope_in_k(ks) @ [alphas[k] for k in ks]) if len(ks) > 1 else None
    whole = OfTokens(None, None, of_k[_CE], Estimate(alphas[1] - of_k[_CE]))
    return Pair({"family": family, "dataset": dataset}, dataset, whole, alphas, Estimate(drift))


def records(result: Exponents) -> list[Record]:
    """A row for each pair of a family and a text, for each kind of its tokens, and for the means; none is stored."""
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
    rows += [{"kind": "mean", "family": None, "dataset": None, **means, **n}] if result.pairs else []
    return rows


def keep(store: Store, result: Exponents) -> list[Record]:
    """Write the pooled laws to the store; return their rows behind those of the pairs."""
    fits = keep_fits(store, [row for pooled in result.pooled for row in fit_records(pooled)])
    return [*records(result), *({"kind": "pooled", **row} for row in fits)]
