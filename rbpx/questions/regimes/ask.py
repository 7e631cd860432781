"""Answers `regimes`.

At large k few tokens are misses: the binomial noise follows from their count, that of the documents from the bootstrap.
Source: RBP paper (arXiv 2510.20387), section 3.3, figure 6.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.config.keys.laws import Fitting
from rbpx.display.law_columns import ALPHA, BACKTEST, CONSTANT, POINTS, R2, estimate_in, law_row, with_params
from rbpx.display.section import Fact, interval_of
from rbpx.display.table import Column, table_of
from rbpx.display.vocabulary import AXES, UNKNOWN, number, short, whole
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.names import Axis
from rbpx.questions.question import OfAll, OnPage, of_each
from rbpx.questions.regimes import RegimesKeys
from rbpx.questions.regimes.figures import BY_NOISE, K, figures, k_of_law
from rbpx.questions.regimes.noise import AtK, predict_noise
from rbpx.questions.result import Result
from rbpx.runs.fits import Law, stands
from rbpx.runs.group import Group
from rbpx.runs.laws import analyse, fit_rows
from rbpx.runs.points.sizes import Points
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.store import Record
from rbpx.ties import Ties

_TOLD_K: Final = (1, 10, 100, 1000)
_FEW: Final = 8  # k


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: RegimesKeys) -> Result:
    """Says how far the laws of `fit laws=[rbp] k=log` reach, and why."""
    asked = request.to(Fitting, laws=["rbp"], k=request.typed["k"] or "log", method=request.method[0].value)
    laws = analyse(connection, group, asked)
    both = list(zip(laws.points, laws.laws, strict=True))
    noise: list[Record] = [{"predicted": None} for _ in both]
    if group.is_measured and group.n_resampled > 1:
        S = [run.x for run in group.runs if run.x is not None]
        noise = predict_noise(S, group.runs[-1].n_tokens or 0, [_at_k(*each) for each in both])
    fits = fit_rows(laws)
    for fit, of, more in zip(fits, both, noise, strict=True):
        fit["params"] |= {"regime": _regime(*of) | more}
    rows = [_shown(row) for row in fits]
    words, ties = AXES[group.axis], "" if group.ties is Ties.pessimistic else f"Ties {group.ties.value}."
    title = f"−ln RBP_k = {words.constant} · {words.x}^−α over k"
    tables = [
        REGIMES.of(
            title, [_told(row, group.axis) for row in rows], group.title, group.axis, ties, brief=_is_told(rows)
        ),
        NOISE.of("Signal and noise of ln(−ln RBP_k)", rows, group.title, group.axis, brief=False),
    ]
    return Result([group], fits, tables, [*_sentences(rows)], partial(figures, group, rows), fits, plain=rows)


def _shown(fit: Record) -> Record:
    regime: Record = fit["params"]["regime"]
    noise = regime["predicted"] or {}
    by_noise = {f"r2_by_noise{end}": noise.get(f"r2{end}") for end in ("", "_lo", "_hi")}
    return with_params(fit) | regime | by_noise | {"n_tokens_needed": noise.get("n_tokens")}


def _regime(points: Points, law: Law) -> Record:
    """What is known of the law at one k besides its numbers.

    n_misses: tokens of the largest model with a rank above k, None where not counted. signal: change of ln y over the
    sizes, by the law. binomial_sd: of ln y at the largest model, if its tokens were independent; document_sd: over
    documents.
    """
    y, n, alpha, document_sd = float(points.y_N[-1]), points.runs[-1].n_tokens, law.fit.alpha.value, None
    share = math.exp(-y) if 0 < y < math.inf and n is not None else None
    if points.y_BN is not None and points.doubt is None:
        ln_y_B = Replicates.of(points.y_BN[:, -1:], points.n_effective).ln_y_BN
        document_sd = float(ln_y_B.std(ddof=1)) if len(ln_y_B) > 1 else None
    return {
        "n_misses": round(n * (1 - share)) if n and share else None,
        "signal": None if alpha is None else alpha * math.log(max(points.S_N) / min(points.S_N)),
        "binomial_sd": math.sqrt((1 - share) / (share * n)) / y if n and share else None,
        "document_sd": document_sd,
        "stands": stands(law),
    }


def _at_k(points: Points, law: Law) -> AtK:
    fit, about = law.fit, law.fit.uncertainty
    with np.errstate(divide="ignore", invalid="ignore"):  # a count of 0 has no logarithm, and is left out
        ln_y_N = np.log(points.y_N)
        ln_y_BN = np.zeros((0, len(points.runs)))
        if points.y_BN is not None:
            ln_y_BN = Replicates.of(points.y_BN, points.n_effective).ln_y_BN
    models = 0.0 if about is None else max(about.scatter**2 - about.text_scatter**2, 0.0) ** 0.5
    return AtK(ln_y_N, ln_y_BN, fit.alpha.value, fit.r2.value, models, stands(law))


def _word(row: Record) -> str:
    status = Status(row["status"] or Status.ok)
    if row["stands"] or status is not Status.ok:
        return "holds" if row["stands"] else status.label
    return "reversed" if row["alpha"] is not None and row["alpha"] < 0 else "noise"


def _is_told(rows: Sequence[Record]) -> list[bool]:
    """Powers of ten, the largest k at which the law holds, and the first at which it does not; all of a few."""
    holds, ends = ([row["k"] for row in rows if row["stands"] is stands] for stands in (True, False))
    told = {*_TOLD_K, *holds[-1:], *ends[:1]}
    return [len(rows) <= _FEW or row["k"] in told for row in rows]


def _sentences(rows: Sequence[Record]) -> Iterator[str]:
    if not rows:
        yield "RBP_k is not known at any k of the grid."
        return
    end = next((row for row in rows if not row["stands"]), None)
    holds = [row for row in rows if row["stands"]]
    last = holds[-1]["k"] if holds else 0
    beyond = next((row for row in rows if row["k"] > last and row["r2"] is not None and row["predicted"]), None)
    told = f"−ln RBP_k follows a power law in {rows[0]['axis']} at {len(holds) or 'none'} of {len(rows)} k"
    if len(rows) == 1:
        told = f"−ln RBP_{rows[0]['k']} follows {'a' if holds else 'no'} power law in {rows[0]['axis']}"
    if holds:
        alphas = " to ".join(dict.fromkeys(f"{row['alpha']:.3f}" for row in (holds[0], holds[-1])))
        told += f": at k = {k_of_law(rows)} (α {alphas})" if len(rows) > 1 else f" (α {alphas})"
    if end is not None:
        status = Status(end["status"] or Status.ok)
        told += f"{', not' if holds else '; not'} at {end['k']:,}" if len(rows) > 1 else ""
        told += f" ({_word(end) if status is Status.ok else status.finding})"
    if beyond is not None:
        hide, misses = "could" if beyond["predicted"]["is_noise"] else "would not", beyond["n_misses"]
        few = "few tokens miss" if misses is None else f"the largest model misses {number_of(misses, 'token')}"
        told += f"; at {beyond['k']:,}, where {few}, noise {hide} hide a law"
    yield f"{told}."
    if beyond is not None:
        r2 = interval_of(estimate_in(beyond["predicted"], "r2"))
        yield (
            f"At k = {beyond['k']:,} R² is {number(beyond['r2'], 3)}; with so few misses a law that goes on would show "
            f"{r2}."
        )


def _told(row: Record, axis: Axis) -> Record:
    said, status = _word(row), Status(row["status"] or Status.ok)
    doubt = f", {status.label}" if said == "holds" and status is not Status.ok else ""
    return law_row(row, axis) | {"told": said + doubt, "law": said, "reasons": None}


REGIMES: Final = table_of(
    "regimes", K, *ALPHA, *R2, *CONSTANT, *POINTS, BACKTEST,
    ("misses", "n_misses", whole, "tokens with a rank above k at the largest {x}"),
    ("law", "told law status"),
    first="k alpha r2 n_misses told, C, backtest_error, r2_lo",
)  # fmt: skip
NOISE: Final = table_of(
    "noise", K,
    ("signal", "signal", short, "change by the law, over all {x}"),
    ("binomial", "binomial_sd", short, "noise at the largest {x}, from counting independent tokens"),
    ("text", "document_sd", short, "noise at the largest {x}, from document sampling"),
    *BY_NOISE,
    first="k signal, document_sd, binomial_sd, r2_by_noise",
)  # fmt: skip


def facts(result: Result) -> Iterator[Fact]:
    """The largest k at which the law holds."""
    reach, last = _reach(result), result.rows[-1]["k"]
    of = "the largest k of the grid" if reach == last else f"of k up to {last:,}"
    yield "largest k at which the law holds", UNKNOWN if reach is None else f"{reach:,}", of


def of_all(results: Sequence[Result]) -> OfAll:
    """Compares the largest k at which the laws of all groups hold."""
    column = Column("largest k", "largest_k", whole, "at which the law holds")
    return OfAll([column], [{"largest_k": _reach(each)} for each in results])


def _reach(result: Result) -> int | None:
    return max((row["k"] for row in result.rows if row["params"]["regime"]["stands"]), default=None)


QUESTION = of_each(answer, select=partial(select, sizes=3), page=OnPage(facts=facts, of_all=of_all))
