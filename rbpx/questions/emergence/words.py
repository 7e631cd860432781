"""Sentences of emergence: how often N tokens in a row are right, and how far that is from independence."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, number, rough
from rbpx.laws.names import Axis
from rbpx.questions.emergence.analysis import LAGS, Emergence
from rbpx.runs.group import Group
from rbpx.status import Status

_WHAT_BENDS: Final = {"drift": "the change of α with N", "curvature": "the curvature in ln {x}"}
_FEWEST: Final = 5  # pairs of hits, as found or as expected, below which a correlation is that of a few tokens
_NOTABLE: Final = 0.03  # a correlation below this is called hardly any


def sentences(found: Sequence[Emergence], group: Group) -> Iterator[str]:
    """For each k, how far the largest model is from independent tokens, and the exponent that all lengths share."""
    if not found:
        yield "The store has no windows of more than one token."
    for of in found:
        said = (_from_independence(group.runs[-1].size, of), _dependence(of), _pooled(of, group.axis))
        if any(said):
            yield f"k = {of.k:,}: {' '.join(filter(None, said))}"


def _from_independence(size: str, of: Emergence) -> str:
    """Compares the second window length of more than one token, or the only one, with independence."""
    known = [
        (at, row)
        for at, row in enumerate(of.by_run[-1])
        if row["n"] > 1 and row["p"] > 0 and row["p_independent"] > 0  # false for NaN
    ]
    if not known:
        return ""
    at, row = known[min(1, len(known) - 1)]
    n, p, alone, ends = row["n"], row["p"], row["p_independent"], of.shares_N[at].ends
    right = f"a share of {p:.3g} of all windows of {n} tokens"
    if of.hits is not None:
        n_all = int(of.hits.windows.total_DN[:, at].sum())
        over = "" if ends is None else f"; 95 %: {ends[0]:.3g} to {ends[1]:.3g}"
        right = f"{round(p * n_all):,} of {n_all:,} windows of {n} tokens (a share of {p:.3g}{over})"
    said = f"{size} gets {right} right; if tokens were independent, it would be {alone:.3g}"
    if ends is None:
        return f"{said}; without an interval nothing says whether they differ."
    is_open = ends[0] <= alone <= ends[1]
    return f"{said}, which these windows do not tell apart." if is_open else f"{said}, {_times(p / alone)}."


def _times(factor: float) -> str:
    if 0.95 < factor < 1.05:
        return "about the same"
    return f"{rough(factor)} times less" if factor > 1 else f"{rough(1 / factor)} times more"


def _dependence(of: Emergence) -> str:
    """How much the hits of the largest model cluster."""
    if of.hits is None or of.hits.adjacent.value is None:
        return ""
    adjacent, *others = (of.hits.rows[0][f"autocorrelation_{lag}"] for lag in LAGS)
    ends, n, alone = of.hits.adjacent.ends, of.hits.n_pairs, of.hits.n_pairs_alone
    lo, hi = ends or (-math.inf, math.inf)
    how = "Whether hits cluster is open"
    if max(n, alone) < _FEWEST:
        how += f", with so few pairs of hits ({n:,}, by chance {alone:.3g})"
    elif lo > 0 and adjacent > _NOTABLE:
        how = "Hits cluster"
    elif hi < 0 and adjacent < -_NOTABLE:
        how = "Hits repel"
    elif abs(adjacent) <= _NOTABLE and max(-lo, hi) <= 2 * _NOTABLE:
        how = "Hits hardly cluster"
    apart = [(rho, lag) for rho, lag in zip(others, LAGS[1:], strict=True) if math.isfinite(rho)]
    more = "".join(f", {number(rho, 3)} at a distance of {lag}" for rho, lag in apart)
    about = "no interval over documents" if ends is None else f"95 %: {number(lo, 3)} to {number(hi, 3)}"
    return f"{how}: the correlation of adjacent tokens is {number(adjacent, 3)} ({about}){more}."


def _pooled(of: Emergence, axis: Axis) -> str:
    """The exponent that all window lengths have in common, or why they have none."""
    pooled, words = of.pooled.fit, AXES[axis]
    if pooled.alpha.value is None:
        return ""
    alpha = interval_of(pooled.alpha)
    how = "falls" if pooled.alpha.value > 0 else "rises"
    sentence = f"With a constant for each N, −ln p {how} as {words.x}^−α with α = {alpha}"
    if Status.no_trend in pooled.reasons:
        sentence = f"The share of windows does not measurably change {words.grows}; one exponent for all N is {alpha}"
    if pooled.bent:
        names = [_WHAT_BENDS.get(one.name, one.name.replace("alpha", "α")).format(x=words.x) for one in pooled.bent]
        differ = "differs" if len(names) == 1 else "differ"
        sentence += f", an average and not a law: {', '.join(names)} {differ} significantly from what one law implies"
    if pooled.dependent:
        longest = pooled.growth[-1].name
        slower = sum(one.estimate.value or 0.0 for one in pooled.dependent if one.name == longest) < 0
        grow = "grow more slowly than N" if slower else "do not grow as N"
        sentence += f". The constants {grow}, so {words.constant}·N·{words.x}^−α does not hold"
    return f"{sentence}."
