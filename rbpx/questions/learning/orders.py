"""Compares the order in which trainings learn the tokens of a text: correlations of times, and what noise allows.

Shapes: M tokens that trainings share, N trainings, H halves of the points.
"""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from rbpx.laws.counts.chances import document_indices, mean_over_documents
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.learning.order import factors, spearman_brown, standardised_ranks, within_groups
from rbpx.laws.learning.times import times_of
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.tokens import Ints, Tokens
from rbpx.store.store import Record

MOST: Final = 16  # trainings that are compared, those of most points first
_FEWEST_TOKENS: Final = 20
_FEWEST_POINTS: Final = 4  # of halves


class TokenTimes(NamedTuple):
    """The times of the tokens of one training at one k.

    Attributes:
        group: the runs.
        tokens: the tokens, without losses and ranks.
        n_points: of the training.
        times: the time of each token, as a cell; then the same from alternate points, unless these are too few.
    """

    group: Group
    tokens: Tokens
    n_points: int
    times: tuple[Ints, ...]

    @classmethod
    def of(cls, group: Group, tokens: Tokens, k: int) -> "TokenTimes":
        """Finds the times from the hits at one k."""
        hit_TM = (tokens.rank_MT <= k).T
        T = len(hit_TM)
        parts = [hit_TM] if T < _FEWEST_POINTS else [hit_TM, hit_TM[0::2], hit_TM[1::2]]
        nothing = np.empty((0, 0), np.float32)
        tokens = tokens._replace(nats_MT=nothing, rank_MT=nothing)
        return cls(group, tokens, T, tuple(times_of(part).lasting_M for part in parts))


def orders(of_text: Sequence[TokenTimes], k: int) -> tuple[Group, list[Record]] | None:
    """Compares the trainings on one text; returns one group and the rows, or None if no two trainings share tokens.

    There is a row for each pair (`_pair`); with three trainings or more also for each common factor of their orders,
    with its share of the variance of the ranks of tokens that all have, and for each training with its loadings.
    """
    chosen = sorted(of_text, key=lambda each: -each.n_points)[:MOST]
    rows = [row for pair in combinations(chosen, 2) for row in _pair(*pair)]
    if not rows:
        return None
    at_NM = _shared(chosen)
    ranks_NM = np.stack([standardised_ranks(each.times[0][at_M]) for each, at_M in zip(chosen, at_NM, strict=True)])
    if len(chosen) > 2 and ranks_NM.shape[1] >= _FEWEST_TOKENS and np.isfinite(ranks_NM).all():
        n_tokens = ranks_NM.shape[1]
        share_F, loading_NF = factors(ranks_NM @ ranks_NM.T / n_tokens)
        for n, share in enumerate(share_F.tolist(), 1):
            rows.append({"kind": "factor", "n": n, "share": share, "n_tokens": n_tokens})
        for each, loading_F in zip(chosen, loading_NF.tolist(), strict=True):
            rows.append({"kind": "loading", "one": each.group.title, "loadings": loading_F})
    names, *others = [each.group.names() for each in chosen]
    same = {name: value if all(other[name] == value for other in others) else None for name, value in names.items()}
    same |= {"axis": chosen[0].group.axis.value, "k": k}
    return chosen[0].group, [{"kind": row["kind"], **same, **row} for row in rows]


def _shared(of_text: Sequence[TokenTimes]) -> list[Ints]:
    """Returns where each has the tokens that all have, by first bytes, or by places and ids if bytes are unknown."""
    has_bytes = all((each.tokens.byte_M >= 0).all() for each in of_text)
    keys = [each.tokens.doc_M << 32 | each.tokens.byte_M if has_bytes else each.tokens.key_M for each in of_text]
    kept = reduce(np.intersect1d, keys)
    return [np.searchsorted(key_M, kept) for key_M in keys]


def _pair(one: TokenTimes, other: TokenTimes) -> list[Record]:
    """Compares two trainings on the same text; empty if they share few tokens.

    one, other: their titles; name: both in short; relation: seeds (of one family and size), sizes (of one family), or
    families.
    rho: Spearman's correlation of their times.
    ceiling: rho if only noise differed: the square root of the product of both reliabilities, from alternate points of
    each; None where one is not positive. of_ceiling: rho over it.
    within: rho without the mean of each token id: the order among occurrences of one id.
    frequency: correlations of both with how rare the id is in the text.
    """
    at_one, at_other = _shared((one, other))
    if len(at_one) < _FEWEST_TOKENS:
        return []
    document_M, id_M = document_indices(one.tokens.doc_M[at_one]), one.tokens.token_id_M[at_one]
    of_one, of_other = (
        [standardised_ranks(times_M[at_M]) for times_M in of.times] for of, at_M in ((one, at_one), (other, at_other))
    )
    rho = _correlation(of_one[0], of_other[0], document_M)
    noise = [spearman_brown(float(np.mean(half[0] * half[1]))) for _, *half in (of_one, of_other) if half]
    product = float(np.prod(noise)) if len(noise) == 2 else math.nan
    ceiling = math.sqrt(product) if math.isfinite(product) else None
    rarity_M = standardised_ranks(-np.bincount(id_M)[id_M])
    names = zip(_names(one.group), _names(other.group), strict=True)
    first, *more = ((a, b) for a, b in names)
    told = [first, *(each for each in more if each[0] != each[1] and each != first)]
    row: Record = {"kind": "pair", "one": one.group.title, "other": other.group.title}
    row |= {"name": " / ".join(" ".join(of) for of in zip(*told, strict=True)), "relation": _relation(one, other)}
    row |= {"n_tokens": len(at_one), **by_name(rho=rho), "ceiling": ceiling}
    of_ceiling = NO_ESTIMATE if ceiling is None else rho.times(1 / ceiling)
    within = _correlation(within_groups(of_one[0], id_M), within_groups(of_other[0], id_M), document_M)
    frequency = {f"frequency_{of}": float(np.mean(t[0] * rarity_M)) for of, t in (("one", of_one), ("other", of_other))}
    return [row | by_name(of_ceiling=of_ceiling, within=within) | frequency]


def _names(group: Group) -> tuple[str, ...]:
    first = group.first
    variant = first.variant or first.revision or "finished"
    return group.fixed_size or first.family, first.family, f"seed {group.runs[0].training_seed}", variant


def _relation(one: TokenTimes, other: TokenTimes) -> str:
    if one.group.first.family != other.group.first.family:
        return "families"
    of_size = one.group.first.size == other.group.first.size and one.group.fixed_size is not None
    return "seeds" if of_size else "sizes"


def _correlation(first_M: Floats, second_M: Floats, document_M: Ints) -> Estimate:
    """Returns the mean product of standardised values, with an interval over documents; empty if one does not vary."""
    rho = float(np.mean(first_M * second_M))
    if not math.isfinite(rho):
        return NO_ESTIMATE
    moved = mean_over_documents(first_M * second_M - rho * (first_M**2 + second_M**2) / 2, document_M)
    return Estimate(rho) if moved.ends is None else Estimate(rho, rho + moved.ends[0], rho + moved.ends[1])
