"""Answers `ranks`."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import estimate_in, with_params
from rbpx.display.section import interval_of
from rbpx.display.table import SIZE, STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import law_title, number, percent, short, whole
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
_FAR: Final = 1e3  # nats behind, from where decimals say nothing
_YES: Final = {True: "yes", False: "no"}
_NAME: Final = Column("distribution", "distribution")


def _behind(value: float) -> str:
    return "best" if value == 0 else number(value) if value < _FAR else short(value)


TOGETHER: Final = table_of(
    "together", _NAME, ("AIC", "aic_above_least", ",.0f"), ("BIC", "bic_above_least", ",.0f"),
    ("best at", "n_best", whole, "sizes at which it has the least AIC"),
    ("parameters", "n_parameters", whole), ("share of rank x", "formula"),
    first="distribution aic_above_least bic_above_least n_best, n_parameters",
)  # fmt: skip
EACH: Final = table_of(
    "rivals", SIZE, _NAME,
    ("behind", "nats_behind", _behind, "nats per token that it loses to the most likely one over 1..V"),
    ("95 %", "nats_behind_lo nats_behind_hi", number),
    ("distance", "distance", ".4f", "largest difference of the two CDFs"),
    ("AIC", "aic", ",.0f"), *interval("μ", "mu", ".2f"), *interval("σ", "sigma", ".2f"),
    ("γ", "gamma", ".4f", "free curvature"),
    STATUS,
    first="size distribution nats_behind status, mu sigma, gamma, distance, aic, mu_lo sigma_lo",
)  # fmt: skip
LAWS: Final = table_of(
    "laws", _NAME, ("law", "quantity"), ("measured", "alpha_measured", ".3f"), ("derived", "alpha", ".3f"),
    *interval("excess", "alpha_more", ".3f", "α derived − α measured; interval over documents and models"),
    *interval("level", "level", ".2f", "derived over measured at the geometric mean of the sizes"),
    ("approx.", "alpha_approximated", ".3f", "α by the paper's approximation of the sums"),
    first="distribution quantity alpha_measured alpha alpha_more, level",
)  # fmt: skip
CLOSURE: Final = table_of(
    "forms", ("form", "form"),
    ("P", "n_parameters", whole, "parameters at one size"),
    ("off", "error", ".1%", "median error at the largest size, of −ln RBP_k up to `reach`, H(P) and CE"),
    ("choice", "error_choice", ".1%", "median error at the sizes that chose the first form"),
    ("inside", "n_inside", whole, "how many of these quantities lie within their 95 % intervals"),
    ("of", "n_scored", whole),
    ("behind", "behind", _behind, "nats per token of the largest size that it loses to the most likely form"),
    ("95 %", "behind_lo behind_hi", number),
    ("closes", "closes", str, "whether all are inside"),
    STATUS,
    first="form error error_choice n_inside n_scored behind closes status, behind_lo",
)  # fmt: skip
CHOSEN: Final = table_of(
    "chosen", ("quantity", "quantity"), ("measured", "measured", short),
    *interval("predicted", "predicted", short, "from the smaller sizes; interval over documents and models"),
    ("error", "error", percent),
    ("separate", "error_separate", percent, "error of a law of this quantity alone"),
    ("inside", "inside"),
    ("scored", "scored", str, "whether it counts"),
    first="quantity measured predicted error inside scored",
)  # fmt: skip


def _named(row: Record) -> Record:
    return with_params(row) | {"distribution": label(row), "gamma": row["params"].get("gamma_unconstrained")}


def _derived(row: Record) -> Record:
    title = law_title(row["params"]["quantity"], row["k"])
    return _named(row) | {"quantity": title, "alpha_measured": row["params"]["measured"]["alpha"]}


def _held(row: Record) -> Record:
    told = {name: _YES[bool(row[name])] for name in ("inside", "scored")}
    return row | told | {
        "quantity": law_title(row["quantity"], row["k"]), "error_separate": relative_error(row, "separate"),
    }  # fmt: skip


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: RanksKeys) -> Result:
    """Compares the distributions of the ranks of a group, and tests closure."""
    ranks = analyse(connection, group, request)
    runs = {run.run_id: {"kind": "distribution", **group.names(), **run.names()} for run in group.runs}
    fitted = [runs[row["run_id"]] | row for row in ranks.rank_fits]
    laws, closure = ranks.fits, ranks.closure
    says, shown = [*_sentences(ranks)], [*_tables(ranks, fitted)]
    return Result(
        [group],
        [*fitted, *laws, *closure],
        shown,
        says,
        partial(figures, ranks),
        laws,
        ranks.rank_fits,
        plain=[*map(with_params, [*fitted, *laws]), *closure],
    )


def _tables(ranks: Ranks, fitted: Sequence[Record]) -> Iterator[Table]:
    about, largest = ranks.group.title, ranks.group.runs[-1].label
    names = [total["distribution"] for total in ranks.totals]
    upto = max(names.index(_FULL) + 1, 3) if _FULL in names else len(names)  # those that are no worse
    title = "Distributions of the ranks, by AIC above the least, summed over the sizes"
    totals = [
        row | {"distribution": label(row), "formula": FAMILIES[row["distribution"]].equation} for row in ranks.totals
    ]
    yield TOGETHER.of(title, totals, about, brief=[at < upto for at in range(len(totals))])
    yield EACH.of("Distributions of the ranks at each size", map(_named, fitted), about, brief=False)
    derived = [_derived(row) for row, *_ in ranks.derived]
    yield LAWS.of("α of laws, measured and derived", derived, about, brief=False)
    forms, held = ([row for row in ranks.closure if row["kind"] == kind] for kind in ("form", "quantity"))
    for chosen in forms[:1]:
        title = f"Forms of the distribution of ranks: {largest} from smaller sizes"
        told = [row | {"form": label(row), "closes": _YES[bool(row["closes"])]} for row in forms]
        yield CLOSURE.of(title, told, about, brief=False)
        of_chosen = [_held(row) for row in held if row["distribution"] == chosen["distribution"]]
        title = f"The chosen form, {label(chosen)}: {RANK_FORMS[chosen['distribution']].equation}"
        yield CHOSEN.of(title, of_chosen, about, brief=False)


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
