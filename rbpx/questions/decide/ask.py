"""Answers `decide`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import duckdb

from rbpx.display.table import STATUS, Table, interval, table_of
from rbpx.display.vocabulary import amount, in_digits, percent, rough, said_of_widening, short, spoken, whole
from rbpx.laws.names import FORM_NAMES, Axis
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.surface.next_runs import LEAST
from rbpx.laws.surface.outliers import farthest_of
from rbpx.questions.decide import DecideKeys
from rbpx.questions.decide.decision import Decision, beyond, decide
from rbpx.questions.decide.figures import figures
from rbpx.questions.decide.page import PAGE
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import By, Group
from rbpx.runs.points.outliers import said_of_largest, said_of_runs, tested
from rbpx.runs.points.surfaces import trained_quantities
from rbpx.runs.run import Run
from rbpx.runs.select.groups import select
from rbpx.runs.select.stored import select_runs
from rbpx.spelling import typed
from rbpx.status import Status, in_order
from rbpx.store.store import Record

_RUNS: Final = {"served": "best with serving", "best": "best", "asked": "asked for"}
_LESS: Final = {"half": (2, "half the size"), "fivefold": (5, "a fifth of the size")}
CHOICES: Final = table_of(
    "best", ("run", "run"), *interval("S", "S", amount), *interval("D", "D", amount),
    ("C", "C", short, "training FLOPs, 6 S D"),
    *interval("loss", "y", in_digits(4), "of a new run, 95 % of which lie in the interval"),
    *interval("more loss", "more", percent, "than the best run of as many FLOPs"),
    ("saved", "saved", ".1%", "of the FLOPs of training and serving, beside the best run"),
    STATUS,
    first="run S D C y more status, y_lo, more_lo, S_lo, saved, D_lo",
)  # fmt: skip
NEXT: Final = table_of(
    "next", ("run", "rank", whole), ("S", "S", amount), ("D", "D", amount), ("C = 6 S D", "C", short),
    ("narrower by", "narrowed", ".1%", "standard deviation of its logarithm, given the runs above"),
    ("sd before", "sd_before", ".4f"), ("sd after", "sd_after", ".4f"), ("per 1e18 FLOPs", "per_flop", rough),
    ("plan", "plan", str, "most per_flop, or the best use of a budget"),
    first="rank S D C narrowed, sd_before sd_after, plan",
)  # fmt: skip


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: DecideKeys) -> Result:
    """Decides what to train next, by cross-entropy unless quantities are named."""
    quantities = trained_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    decisions = [decide(group, tested(each, request), request) for each in quantities]
    rows = alike([row for each in decisions for row in each.rows])
    drawn = partial(figures, group, decisions, request.seed)
    asks, notes = request.next is not None, [*said_of_runs(group, [each.trained for each in decisions])]
    notes += [line for each in decisions for line in _said_of_largest(each)]
    if group.first.variant is not None:
        notes += _said_of_change(select_runs(connection, request), group.first)
    titles = [f"{each.trained.title}: " if len(decisions) > 1 else "" for each in decisions]
    said = [f"{title}{each}" for title, of in zip(titles, decisions, strict=True) for each in _said(of, request.next)]
    return Result([group], rows, [*_tables(group, decisions, asks)], said, drawn, notes=notes)


def _tables(group: Group, decisions: Sequence[Decision], asks: bool) -> Iterator[Table]:
    for n, of in enumerate(decisions, 1):
        quantity = f": {of.trained.title}" if len(decisions) > 1 else ""
        if rows := [*_choices(of)]:
            yield CHOICES.of(f"What else costs what{quantity}", alike(rows), group.title, brief=not asks)
        if rows := [row for row in of.of_kind("next") if "S" in row]:
            rows = [row | {"per_flop": row["per_flop"] * 1e18} for row in rows]
            title = f"Runs that make {rows[0]['target']} more certain{quantity}"
            yield replace(NEXT, name=f"next-{n}").of(title, rows, group.title, brief=asks)


def _choices(of: Decision) -> Iterator[Record]:
    first = next(iter(of.of_kind("best")), None)
    forms = {form: f" by {form}" for form in FORM_NAMES}
    for method, less in {COMBINED: "", WITHOUT_LARGEST: " without the largest", **forms}.items():
        for row in of.of_kind(*_RUNS, method=method):
            at, S = row | {"run": f"{_RUNS[row['kind']]}{less}"}, row["S"]
            yield at if S is None else at | {"C": 6 * S * row["D"]}
            if row is first and S is not None:
                yield from _smaller(of, row)


def _smaller(of: Decision, best: Record) -> Iterator[Record]:
    S, D, longest = best["S"], best["D"], float((of.trained.runs.D_N / of.trained.runs.S_N).max())
    for key, (times, name) in _LESS.items():
        if (more := best[key]) is not None:
            doubts = in_order([*map(Status, best["reasons"]), *beyond(1.0, D / S * times**2 / longest)])
            less = {"S": S / times, "D": D * times, "y": best["y"] and best["y"] * (1 + more), "C": best["C"]}
            less |= {"more": more, "more_lo": best[f"{key}_lo"], "more_hi": best[f"{key}_hi"], "reasons": doubts}
            yield {"run": name} | less


def _said(of: Decision, asked: int | None) -> Iterator[str]:
    (about,), asks, following = of.of_kind("runs"), asked is not None, [*_said_of_next(of, asked)]
    yield from following if asks else ()
    if Status.collinear_design.value in about["reasons"] and not of.of_kind("best"):
        design, D = of.fits[0].design, float(of.trained.runs.D_N.max())
        said, which = "size and tokens vary together", f"longer or shorter{'' if asks else '; next=3 says which'}"
        if design is not None and design.n_D == 1:
            said, which = f"all runs have {spoken(D)} training tokens", "on a third and on three times as many"
        yield f"No size is best yet: {said}, so what more of either brings is unknown. Train some sizes {which}."
    elif not any(fit.surface is not None for fit in of.fits):
        yield f"No size is best yet: {Status(about['status']).remedy}"
    yield from (_best(of, row) for row in _leading(of, COMBINED))
    yield from () if asks else following
    if about["E"] is not None:
        ways = [about, *of.of_kind("runs", method=WITHOUT_LARGEST)]
        yield f"No model gets below {', without them '.join(_between(row, 'E', in_digits(4)) for row in ways)}."
    largest = max(of.of_kind("largest"), key=lambda row: abs(row["in_sd"]), default=None)
    if (
        largest is not None
        and of.trained.largest_off is None
        and abs(largest["in_sd"]) > farthest_of(len(of.of_kind("largest")))
    ):
        yield (
            f"The run of {spoken(largest['S'])} parameters on {spoken(largest['D'])} tokens is "
            f"{rough(abs(largest['in_sd']))} standard deviations {'worse' if largest['in_sd'] > 0 else 'better'} than "
            "smaller ones say."
        )


def _said_of_largest(of: Decision) -> Iterator[str]:
    if (off := said_of_largest(of.trained)) is not None:
        best = [_best(of, row) for row in _leading(of, WITHOUT_LARGEST)]
        without = [f"ithout them, {each[0].lower()}{each[1:]}" for each in best]
        yield f"{off}; w{without[0]}" if without else f"{off}."
        yield from (f"W{each}" for each in without[1:])


def _said_of_change(runs: Sequence[Run], own: Run) -> Iterator[str]:
    place = (own.source, own.family, own.dataset)
    beside = [run.variant or "" for run in runs if (run.source, run.family, run.dataset) == place]
    base, variant = (f"{own.family}:{of}" if of else own.family for of in (min(beside), own.variant))
    if base != variant:
        keys = {"base": base, "variant": variant, "source": own.source, "axis": "C"}
        yield f"Fits of variants are separate and do not say what {own.variant} is worth: {typed('multiplier', keys)}"


def _leading(of: Decision, method: str) -> list[Record]:
    return [row for kind in ("served", "best") for row in of.of_kind(kind, method=method)]


def _best(of: Decision, row: Record) -> str:
    serves, most = row["kind"] == "served", float(of.trained.runs.along(Axis.C).max())
    budget = f"{short(row['C'])} FLOPs"
    if serves:
        budget += f" for training and for serving {spoken(row['T'])} tokens" if row["within"] else ""
    elif row["C"] > 1.01 * most:
        budget += f", {rough(row['C'] / most)} times the largest run's"
    if row["S"] is None:
        return f"No size near those of the runs is the best of {budget}: {Status(row['status']).remedy}"
    said = f"Train {amount(row['S'])} parameters on {amount(row['D'])} tokens"
    if serves and not row["within"]:
        saved = "" if row["saved"] is None else f", which saves {row['saved']:.1%} of all FLOPs"
        said += f" to serve {spoken(row['T'])} at the loss of the best run of {budget}{saved}"
    else:
        loss = "loss" if of.trained.law == "cross_entropy" else of.trained.title
        said += f": {loss} {_between(row, 'y', in_digits(4))}{said_of_widening(row)}, the best of {budget}"
    if row["S_lo"] is not None and row["S_hi"] is not None:
        said += f"; the best size is {spoken(row['S_lo'])} to {spoken(row['S_hi'])}"
    return f"{said}; {_trust(of, row)}."


def _trust(of: Decision, row: Record) -> str:
    held = [each["held"] is True for each in of.of_kind("largest")]
    if Status.beyond in row["reasons"]:
        return "far from the runs, so nothing tests it"
    if row["method"] == WITHOUT_LARGEST:
        return "the largest runs speak against it"
    if Status.intervals_missed in row["reasons"]:
        return "predicted from smaller runs, too many of the larger ones lie outside their 95 % intervals"
    if len(held) == 1:
        return f"predicted from smaller runs, the largest lies {'within' if all(held) else 'outside'} its 95 % interval"
    of_largest = f"{sum(held)} of the {len(held)} largest lie within their 95 % intervals"
    return f"predicted from smaller runs, {of_largest}" if held else "no larger run tests it"


def _said_of_next(of: Decision, asked: int | None) -> Iterator[str]:
    for row in of.of_kind("next"):
        plan = [each for each in of.of_kind("next") if each["plan"] == row["plan"]]
        if "S" not in row:
            yield from [] if asked is None else [f"No run makes {row['target']} {LEAST:.0%} more certain."]
        elif row["rank"] == 1:
            n, all_of_them = len(plan), 1 - plan[-1]["sd_after"] / row["sd_before"]
            enough = "" if row["next_narrows"] is None else f", one more by less than {LEAST:.0%}"
            yield (
                f"Train next {amount(row['S'])} parameters on {amount(row['D'])} tokens ({short(row['C'])} FLOPs): "
                f"that makes {row['target']} {row['narrowed']:.0%} more certain"
                f"{f', the best {n} together {all_of_them:.0%}' if n > 1 else ''}{enough if n < (asked or 0) else ''}."
            )


def _between(row: Record, name: str, how: Any = spoken) -> str:
    value, lo, hi = (row[f"{name}{end}"] for end in ("", "_lo", "_hi"))
    return how(value) if lo is None or hi is None else f"{how(value)} ({how(lo)} to {how(hi)})"


QUESTION = of_each(answer, select=partial(select, by=By.training), page=PAGE)
