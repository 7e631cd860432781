"""Answers how ranks are distributed: rival distributions, the published lognormal, the laws implied, and closure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import (
    Cell,
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
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, decimals, law_title, number, percent, short
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.ranks.distribution import DISTRIBUTIONS
from rbpx.laws.ranks.family import FAMILIES
from rbpx.laws.ranks.shapes import RANK_FORMS
from rbpx.questions.question import of_each
from rbpx.questions.ranks.analysis import Ranks, analyse
from rbpx.questions.ranks.compare import PAPER
from rbpx.questions.ranks.figures import figures
from rbpx.questions.ranks.forms import off
from rbpx.questions.ranks.words import FORMS, form_label, sentences
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.ways import in_size
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Compare the distributions of the ranks of a group, and whether its laws follow from one."""
    ranks = analyse(connection, group, request)
    runs = {run.run_id: {"kind": "distribution", **group.names(), **run.names()} for run in group.runs}
    fitted = [runs[row["run_id"]] | row for row in ranks.rank_fits]
    rows, shown = [*fitted, *ranks.fits, *ranks.closure], [*_tables(ranks, fitted), *_closure(ranks)]
    return Result([group], rows, shown, [*sentences(ranks)], partial(figures, ranks), ranks.fits, ranks.rank_fits)


def _tables(ranks: Ranks, fitted: Sequence[Record]) -> Iterator[Table]:
    """All distributions together and at each size, the published fit, then the laws implied."""
    about = ranks.group.title
    equations = "; ".join(f"{FORMS[name]}: {FAMILIES[name].equation}" for name in DISTRIBUTIONS)
    note = (
        f"Ties {ranks.group.ties.value}. Fitted by maximum likelihood to the ranks 1..V; the published fit is to ranks "
        f"from 2 up. The share of rank x is, up to a factor: {equations}."
    )
    yield TOGETHER.table("Distributions of the ranks, all sizes together", ranks.totals, about)
    rivals = [row for row in fitted if row["distribution"] != PAPER]
    yield RIVALS.table("Distributions of the ranks over 1..V", rivals, about, note=note)
    gamma = {row["run_id"]: row["params"].get("gamma_unconstrained") for row in rivals if row["distribution"] == _FULL}
    published = [row | {"gamma": gamma[row["run_id"]]} for row in fitted if row["distribution"] == PAPER]
    yield PUBLISHED.table("Lognormal as published, ranks from 2 up", published, about)
    for name in dict.fromkeys(law.row["distribution"] for law in ranks.derived):
        laws = [law.row | {"ratio": law.ratio} for law in ranks.derived if law.row["distribution"] == name]
        form = f"{FORMS[name]}{'' if name == PAPER else ', the smallest AIC'}"
        table = LAWS.table(f"α of laws, measured and derived: {form}", laws, about)
        yield replace(table, name=f"laws-{name.replace('_', '-')}")


def _closure(ranks: Ranks) -> Iterator[Table]:
    """What each form predicts of the largest size, then the chosen one in each quantity."""
    about, runs = ranks.group.title, ranks.group.runs
    forms, held = ([row for row in ranks.closure if row["kind"] == kind] for kind in ("form", "quantity"))
    if not forms:
        return
    smaller = [run.size for run in runs if run.non_embedding_params < runs[-1].non_embedding_params]
    note = (
        "Each form is fitted to all sizes but the largest at once, with its parameters on lines in ln S. A form "
        "without kinds of tokens takes CE to be H(P)."
    )
    errors: dict[str, Record] = {form["distribution"]: {} for form in forms}
    for row in held:
        errors[row["distribution"]][f"error_of_{row['quantity']}"] = row["error"]
    title = f"Forms of the distribution of ranks: {runs[-1].size}, from {smaller[0]} to {smaller[-1]}"
    yield CLOSURE.table(title, [form | errors[form["distribution"]] for form in forms], about, note=note)
    name, of_chosen = forms[0]["distribution"], [row for row in held if row["distribution"] == forms[0]["distribution"]]
    yield CHOSEN.table(f"The chosen form, {RANK_FORMS[name].label}: {RANK_FORMS[name].equation}", of_chosen, about)


def _thousands(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _difference_ends(row: Record) -> Cell:
    """The interval of a difference, or the status that says why there is none."""
    ratio = row["ratio"]
    ends = ratio.alpha.lo, ratio.alpha.hi
    if ratio.alpha.lo is None:
        return Cell((ratio.status.label,), ends, doubts=(ratio.status,))
    return Cell(tuple(number(end, 3) for end in ends), ends)


def _inside(form: Record) -> Cell:
    return Cell((f"{form['n_inside']}/{form['n_scored']}",), (form["n_inside"], form["n_scored"]))


def _own(held: Record) -> Estimate:
    return Estimate(*(off(held, f"own{end}") for end in ("", "_lo", "_hi")))


_FULL: Final = "lognormal_full"
_CONVERGED: Final = "converged"  # all that ok says of a distribution, which may be thousands of AIC behind another
_SIZE: Final[Column[Record]] = text("size", "size")
_NAME: Final[Column[Record]] = text("distribution", "distribution", lambda row: FORMS[row["distribution"]])
_LIKELY: Final[Sequence[Column[Record]]] = (
    decimal("distance", "distance", means="largest difference of the two CDFs", spare=1),
    written("AIC", "aic", None, _thousands, spare=2),
)
_STATUS: Final[Column[Record]] = state(None, _CONVERGED)
TOGETHER: Final = View[Record](
    "together",
    _NAME,
    whole("parameters", "n_parameters"),
    written(
        "AIC", "aic_above_least", None, _thousands,
        "summed over the sizes, minus the smallest; AIC and BIC treat tokens as independent, intervals do not",
    ),
    written("BIC", "bic_above_least", None, _thousands),
    whole("best at", "n_best", means="the number of sizes at which it has the smallest AIC"),
)  # fmt: skip
RIVALS: Final = View[Record](
    "rivals",
    _SIZE,
    _NAME,
    behind("nats_behind", means="nats per token that it loses to the most likely one"),
    _LIKELY,
    decimal("μ", "mu", digits=2, spare=3),
    decimal("σ", "sigma", digits=2, spare=3),
    _STATUS,
)
PUBLISHED: Final = View[Record](
    "published",
    _SIZE,
    whole("S", "non_embedding_params", spare=3),
    whole("tokens", "n_tokens", means="those with a rank from 2 up", spare=4),
    with_ends("μ", "mu", None, decimals(2)),
    with_ends("σ", "sigma", None, decimals(2)),
    decimal("γ", "gamma", means="free curvature of the lognormal over all ranks; at 0 or below no lognormal fits"),
    _LIKELY,
    _STATUS,
)
LAWS: Final = View[Record](
    "laws",
    text("law", "quantity", lambda row: law_title(row["params"]["quantity"], row["k"])),
    decimal("measured", "alpha_measured", lambda row: row["params"]["measured"]["alpha"], 3),
    decimal("derived", "alpha", digits=3),
    decimal(
        "excess", "alpha_more", None, 3,
        "α derived − α measured, below 0 where the derived law is flatter; interval over documents and models",
    ),
    Column("95 %", ("alpha_more_lo", "alpha_more_hi"), _difference_ends),
    with_ends(
        "level", "level", None, decimals(2),
        "derived over measured at the geometric mean of the sizes; exact closure would be 1, and an excess of 0",
    ),
    decimal("approx.", "alpha_approximated", None, 3, "α by the paper's approximation of the sums", 1),
)  # fmt: skip
CLOSURE: Final = View[Record](
    "forms",
    text("form", "form", form_label),
    whole("P", "n_parameters", means="parameters at one size", spare=5),
    share(
        "off", "error",
        means="median error at the largest size, over −ln RBP_k up to the largest k whose law stands, H(P) and CE",
    ),
    share(
        "choice", "error_choice",
        means="median error of all quantities at the sizes that chose the first form, each predicted from those below",
    ),
    share("own fit", "error_own", means="off when fitted to that size itself", spare=3),
    error("H(P)", "error_of_error_entropy", means="error of error-entropy", spare=1),
    error("CE", "error_of_cross_entropy", means="error of cross-entropy", spare=1),
    Column("inside", ("n_inside", "n_scored"), _inside, "how many of these quantities lie within their 95 % intervals"),
    behind(
        "behind", None,
        "nats per token of the largest size that it loses to the most likely form; interval over documents", 2,
    ),
    decimal("α of −ln RBP_1", "alpha_rbp_1", None, 3, "exponent that it implies", 4),
    decimal("α of CE", "alpha_cross_entropy", None, 3, spare=4),
    text("closes", "closes", lambda row: "yes" if row["closes"] else "no", "whether all are inside"),
    _STATUS,
)  # fmt: skip
CHOSEN: Final = View[Record](
    "chosen",
    text("quantity", "quantity", lambda row: law_title(row["quantity"], row["k"])),
    magnitude("measured", "measured"),
    with_ends("predicted", "predicted", None, short, "from the smaller sizes; interval over documents and models"),
    error("error", "error"),
    error("separate", "error_separate", lambda row: off(row, "separate"), "error of a law of this quantity alone", 1),
    with_ends("own fit", "error_own", _own, percent, "error of the form when fitted to the largest size itself", 2),
    text(
        "inside", "inside", lambda row: ("{}" if row["scored"] else "({})").format("yes" if row["inside"] else "no"),
        "in brackets where it does not count",
    ),
)  # fmt: skip
QUESTION = of_each(answer, select=partial(in_size, along=False))
