"""Whether trainings learn the same tokens of a text in the same order: correlations of times beside what noise allows.

Shapes: M tokens that two trainings share, T points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.counts.chances import mean_over_documents, numbered
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.learning.order import factors, ranked, stepped_up, without_mean_of
from rbpx.laws.learning.times import lasting
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.found import Found
from rbpx.questions.learning.tokens import Tokens
from rbpx.runs.group import Group
from rbpx.store.store import Record

MOST: Final = 16  # trainings that are compared, those of most points first
_FEWEST_TOKENS: Final = 20
_FEWEST_IN_HALF: Final = 2  # points


@dataclass(frozen=True, eq=False)
class Times:
    """The times of the tokens of one group at one k.

    Attributes:
        group: the runs.
        tokens: whose losses are no longer needed.
        cell_M: the time of each, as a cell.
        halves_HM: the same from every other point; None with too few.
    """

    group: Group
    tokens: Tokens
    cell_M: NDArray[np.int64]
    halves_HM: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    @classmethod
    def of(cls, group: Group, tokens: Tokens, k: int) -> "Times":
        """The times from the hits at one k."""
        hit_TM = (tokens.rank_MT <= k).T
        halves = (lasting(hit_TM[0::2]), lasting(hit_TM[1::2])) if len(hit_TM) >= 2 * _FEWEST_IN_HALF else None
        return cls(group, tokens.without_losses(), lasting(hit_TM), halves)


def orders(of_text: Sequence[Times], k: int) -> Found | None:
    """Compare the trainings on one text; None where no two of them share tokens.

    A row for each pair (`_pair`); with three trainings or more for each factor that their orders have in common, with
    its share of the variance of the ranks of tokens that all of them have, and for each training with its loadings.
    """
    chosen = sorted(of_text, key=lambda times: -len(times.tokens.x_T))[:MOST]
    rows = [row for one, other in combinations(chosen, 2) if (row := _pair(one, other)) is not None]
    if not rows:
        return None
    ranks_NM = _all_ranked(chosen) if len(chosen) > 2 else None
    if ranks_NM is not None and np.isfinite(ranks_NM).all():
        n_tokens = ranks_NM.shape[1]
        found = factors(ranks_NM @ ranks_NM.T / n_tokens)
        for n, share in enumerate(found.share_F.tolist(), 1):
            rows.append({"kind": "factor", "n": n, "share": share, "n_tokens": n_tokens})
        for times, loading_F in zip(chosen, found.loading_NF.tolist(), strict=True):
            rows.append({"kind": "loading", "one": times.group.title, "loadings": loading_F})
    group = chosen[0].group
    each, *others = [times.group.names() for times in chosen]
    names = {name: value if all(other[name] == value for other in others) else None for name, value in each.items()}
    return Found.of_rows(f"{group.first.dataset}, k = {k}", group, [row | {"k": k} for row in rows], names)


def _places(one: Tokens, other: Tokens) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where both have the same token: by its first byte, or, where bytes are not known, by its place and id."""
    if (one.byte_M >= 0).all() and (other.byte_M >= 0).all():
        keys = [tokens.doc_M << 32 | tokens.byte_M for tokens in (one, other)]
    else:
        keys = [(tokens.doc_M << 20 | tokens.position_M) << 21 | tokens.token_id_M for tokens in (one, other)]
    _, at_one, at_other = np.intersect1d(keys[0], keys[1], return_indices=True)
    return at_one, at_other


def _pair(one: Times, other: Times) -> Record | None:
    """Two trainings on the same text; None where they share few tokens.

    one, other: their titles; name: both in short; relation: seeds (of one family and size), sizes (of one family), or
        families.
    rho: Spearman's correlation of their times.
    ceiling: what it would be if the order were the same and only noise differed: sqrt of the product of both
        reliabilities, from every other point of each; None where one of them is not positive. of_ceiling: rho over it.
    within: rho of what is left without the mean of each token id: the order among occurrences of one id.
    frequency: the correlations of both with how rarely the id occurs in the text.
    """
    at_one, at_other = _places(one.tokens, other.tokens)
    if len(at_one) < _FEWEST_TOKENS:
        return None
    document_M, id_M = numbered(one.tokens.doc_M[at_one]), one.tokens.token_id_M[at_one]
    times_M = ranked(one.cell_M[at_one]), ranked(other.cell_M[at_other])
    rho = _correlation(*times_M, document_M)
    product = _reliability(one, at_one) * _reliability(other, at_other)
    ceiling = float(np.sqrt(product)) if np.isfinite(product) else None
    within = [without_mean_of(each_M, id_M) if np.isfinite(each_M).all() else each_M for each_M in times_M]
    rarity_M = ranked(-np.bincount(id_M)[id_M])
    row: Record = {"kind": "pair", "one": one.group.title, "other": other.group.title}
    row |= {"name": " / ".join(_names(one.group, other.group)), "relation": _relation(one.group, other.group)}
    row |= {"n_tokens": len(at_one), **by_name(rho=rho), "ceiling": ceiling}
    row |= by_name(
        of_ceiling=NO_ESTIMATE if ceiling is None else rho.times(1 / ceiling),
        within=_correlation(within[0], within[1], document_M),
    )
    frequency = [float(np.mean(each_M * rarity_M)) for each_M in times_M]
    return row | {"frequency_one": frequency[0], "frequency_other": frequency[1]}


def _names(one: Group, other: Group) -> list[str]:
    """What tells two trainings apart, in short: size, family, seed, variant and revision, as far as they differ."""
    sizes = [group.fixed_size or group.first.family for group in (one, other)]
    families = [group.first.family for group in (one, other)]
    seeds = [f"seed {group.runs[0].training_seed}" for group in (one, other)]
    variants = [group.first.variant or group.first.revision or "finished" for group in (one, other)]
    found = sizes
    for more in (families, seeds, variants):
        if more[0] != more[1] and more != found:
            found = [f"{name} {each}" for name, each in zip(found, more, strict=True)]
    return found


def _relation(one: Group, other: Group) -> str:
    if one.first.family != other.first.family:
        return "families"
    return "seeds" if one.first.size == other.first.size and one.fixed_size is not None else "sizes"


def _correlation(first_M: Floats, second_M: Floats, document_M: NDArray[np.intp]) -> Estimate:
    """The mean product of standardised values, with an interval over documents; none where one does not vary."""
    if not (np.isfinite(first_M).all() and np.isfinite(second_M).all()):
        return NO_ESTIMATE
    rho = float(np.mean(first_M * second_M))
    influence_M = first_M * second_M - rho * (first_M**2 + second_M**2) / 2
    found = mean_over_documents(influence_M, document_M)
    lo, hi = (None, None) if found.ends is None else (rho + found.ends[0], rho + found.ends[1])
    return Estimate(rho, lo, hi)


def _reliability(times: Times, at: NDArray[np.intp]) -> float:
    """How far the times of a training are known, from every other of its points."""
    if times.halves_HM is None:
        return float("nan")
    halves = [ranked(half_M[at]) for half_M in times.halves_HM]
    return stepped_up(float(np.mean(halves[0] * halves[1])))


def _all_ranked(of_text: Sequence[Times]) -> Floats | None:
    """The ranks of the times of the tokens that all trainings have, [N, M]."""
    first, at_first, places = of_text[0], np.arange(len(of_text[0].cell_M)), list[NDArray[np.intp]]()
    for other in of_text[1:]:
        at_one, at_other = _places(first.tokens, other.tokens)
        kept, mine, theirs = np.intersect1d(at_first, at_one, return_indices=True)
        places = [each[mine] for each in places] + [at_other[theirs]]
        at_first = kept
    if len(at_first) < _FEWEST_TOKENS:
        return None
    rows = [ranked(first.cell_M[at_first])]
    rows += [ranked(other.cell_M[at]) for other, at in zip(of_text[1:], places, strict=True)]
    return np.stack(rows)
