"""Answers the question ranks: rival distributions, the laws that they imply, and whether one implies all laws."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.view import (
    SIZE,
    Column,
    Table,
    View,
    behind,
    decimal,
    error,
    magnitude,
    share,
    state,
    text,
    value_of,
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, decimals, law_title, short
from rbpx.errors import number_of
from rbpx.laws.ranks.distribution import DISTRIBUTIONS
from rbpx.laws.ranks.family import FAMILIES
from rbpx.laws.ranks.shapes import RANK_FORMS
from rbpx.questions.question import of_each
from rbpx.questions.ranks import RanksKeys
from rbpx.questions.ranks.analysis import NOT_TESTED, Ranks, analyse
from rbpx.questions.ranks.closure import relative_error
from rbpx.questions.ranks.compare import PAPER
from rbpx.questions.ranks.figures import figures, label
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.select.groups import select
from rbpx.status import Status, first_of
from rbpx.store.store import Record

_FULL: Final = "lognormal_full"
_TOLD: Final = 10  # difference of AIC that decides between two distributions
_NAME: Final[Column[Record]] = text("distribution", "distribution", lambda row: label(row))
_STATUS: Final[Column[Record]] = state()


def _thousands(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


TOGETHER: Final = View[Record](
    "together",
    _NAME,
    written("AIC", "aic_above_least", None, _thousands),
    written("BIC", "bic_above_least", None, _thousands),
    whole("best at", "n_best", means="sizes at which it has the least AIC"),
    whole("parameters", "n_parameters", spare=1),
    text("share of rank x", "formula", lambda row: FAMILIES[row["distribution"]].equation, spare=2),
)
EACH: Final = View[Record](
    "rivals",
    SIZE,
    _NAME,
    behind("nats_behind", means="nats per token that it loses to the most likely one over 1..V"),
    decimal("distance", "distance", means="largest difference of the two CDFs", spare=3),
    written("AIC", "aic", None, _thousands, spare=4),
    with_ends("μ", "mu", None, decimals(2), spare=1, ends_spare=5),
    with_ends("σ", "sigma", None, decimals(2), spare=1, ends_spare=5),
    decimal("γ", "gamma", lambda row: value_of(row, "gamma_unconstrained"), means="free curvature", spare=2),
    _STATUS,
)
LAWS: Final = View[Record](
    "laws",
    _NAME,
    text("law", "quantity", lambda row: law_title(row["params"]["quantity"], row["k"])),
    decimal("measured", "alpha_measured", lambda row: row["params"]["measured"]["alpha"], 3),
    decimal("derived", "alpha", digits=3),
    with_ends("excess", "alpha_more", None, decimals(3), "α derived − α measured; interval over documents and models"),
    with_ends("level", "level", None, decimals(2), "derived over measured at the geometric mean of the sizes", 1),
    decimal("approx.", "alpha_approximated", None, 3, "α by the paper's approximation of the sums", 2),
)
CLOSURE: Final = View[Record](
    "forms",
    text("form", "form", lambda row: label(row)),
    whole("P", "n_parameters", means="parameters at one size", spare=3),
    share("off", "error", means="median error at the largest size, of −ln RBP_k up to `reach`, H(P) and CE"),
    share("choice", "error_choice", means="median error at the sizes that chose the first form"),
    whole("inside", "n_inside", means="how many of these quantities lie within their 95 % intervals"),
    whole("of", "n_scored"),
    behind("behind", None, "nats per token of the largest size that it loses to the most likely form", 2),
    text("closes", "closes", lambda row: "yes" if row["closes"] else "no", "whether all are inside"),
    _STATUS,
)
CHOSEN: Final = View[Record](
    "chosen",
    text("quantity", "quantity", lambda row: law_title(row["quantity"], row["k"])),
    magnitude("measured", "measured"),
    with_ends("predicted", "predicted", None, short, "from the smaller sizes; interval over documents and models"),
    error("error", "error"),
    error(
        "separate",
        "error_separate",
        lambda row: relative_error(row, "separate"),
        "error of a law of this quantity alone",
        1,
    ),
    text("inside", "inside", lambda row: "yes" if row["inside"] else "no"),
    text("scored", "scored", lambda row: "yes" if row["scored"] else "no", "whether it counts"),
)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: RanksKeys) -> Result:
    """Compares the distributions of the ranks of a group, and tests whether its laws follow from one."""
    ranks = analyse(connection, group, request)
    runs = {run.run_id: {"kind": "distribution", **group.names(), **run.names()} for run in group.runs}
    fitted = [runs[row["run_id"]] | row for row in ranks.rank_fits]
    rows = [*fitted, *ranks.fits, *ranks.closure]
    says, shown = [*_sentences(ranks)], [*_tables(ranks, fitted)]
    return Result([group], rows, shown, says, partial(figures, ranks), ranks.fits, ranks.rank_fits)


def _tables(ranks: Ranks, fitted: Sequence[Record]) -> Iterator[Table]:
    about, largest = ranks.group.title, ranks.group.runs[-1].label
    names = [total["distribution"] for total in ranks.totals]
    upto = max(names.index(_FULL) + 1, 3) if _FULL in names else len(names)  # those that are no worse
    title = "Distributions of the ranks, by AIC above the least, summed over the sizes"
    yield TOGETHER.table(title, ranks.totals, about, brief=lambda row: row["distribution"] in names[:upto])
    yield EACH.table("Distributions of the ranks at each size", fitted, about, brief=False)
    yield LAWS.table("α of laws, measured and derived", [row for row, *_ in ranks.derived], about, brief=False)
    forms, held = ([row for row in ranks.closure if row["kind"] == kind] for kind in ("form", "quantity"))
    for chosen in forms[:1]:
        title = f"Forms of the distribution of ranks: {largest} from smaller sizes"
        yield CLOSURE.table(title, forms, about, brief=False)
        of_chosen = [row for row in held if row["distribution"] == chosen["distribution"]]
        title = f"The chosen form, {label(chosen)}: {RANK_FORMS[chosen['distribution']].equation}"
        yield CHOSEN.table(title, of_chosen, about, brief=False)


def _sentences(ranks: Ranks) -> Iterator[str]:
    remedy = first_of(Status(row["status"]) for row in ranks.rank_fits if row["aic"] is None).remedy
    yield f"{_verdict(ranks)}. {_levels(ranks)}." if ranks.totals else f"No distribution fits every size. {remedy}"
    for row in ranks.trends:
        name, change = {"lognormal_mu": "μ", "lognormal_sigma": "σ"}[row["law"]], estimate_in(row, "alpha").times(-1)
        yield f"{name} of the published fit changes by {interval_of(change)} for each ln S."
    if not ranks.closure:
        yield f"Whether all laws follow from one distribution was not tested. {NOT_TESTED}"
        return
    forms = [row for row in ranks.closure if row["kind"] == "form"]
    chosen, closing = forms[0], [label(form) for form in forms[1:] if form["closes"]]
    if chosen["error"] is None:
        return
    separate = "" if chosen["error_separate"] is None else f", separate laws by {chosen['error_separate']:.1%}"
    others = f" Of the other {len(forms) - 1}, {'; '.join(closing)} would have all within." if closing else ""
    yield (
        f"{'All' if chosen['closes'] else 'Not all'} laws follow from {label(chosen)}. Chosen by how it predicts "
        f"{', '.join(chosen['chosen_on'])} from the sizes below, it has {chosen['n_inside']} of {chosen['n_scored']} "
        f"quantities of {ranks.group.runs[-1].label}, which took no part in the choice, within their intervals and is "
        f"off by {chosen['error']:.1%}{separate}.{others}"
    )


def _verdict(ranks: Ranks) -> str:
    best, n, name = ranks.totals[0], len(ranks.group.runs), label(ranks.totals[0])
    if best["distribution"] == _FULL:
        others = f"none of {len(ranks.totals) - 1} other distributions fits them better"
        return f"The ranks are lognormal: {others}, over all sizes and at {best['n_best']} of {n}"
    aic = {each: [row["aic"] for row in ranks.rank_fits if row["distribution"] == each] for each in DISTRIBUTIONS}
    above = [total["aic_above_least"] for total in ranks.totals if total["distribution"] == _FULL]
    better = sum(of is None or own < of for own, of in zip(aic[best["distribution"]], aic[_FULL], strict=True))
    at = f"all {n} sizes" if better == n > 1 else f"{better} of {number_of(n, 'size')}"
    not_told = "perhaps not" if above and above[0] < _TOLD else "not"
    article = "an" if name[0] in "aeiou" else "a"
    return f"The ranks are {not_told} lognormal: {article} {name} fits them better at {at}"


def _levels(ranks: Ranks) -> str:
    missed = dict[str, str]()
    for row, *_ in ranks.derived:
        if row["distribution"] == PAPER:
            level, law = estimate_in(row["params"], "level"), row["params"]["quantity"]
            missed.setdefault(law, f"{law_title(law, row['k'])} {interval_of(level, 2)} times")
    if not missed:
        return "A lognormal implies no laws here, which needs 3 sizes and the published fit at each"
    said = " and ".join(of for law, of in missed.items() if law != "error_entropy")
    return f"The lognormal implies {said} what was measured"


QUESTION = of_each(answer, select=partial(select, by=By.size))
