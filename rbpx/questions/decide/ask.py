"""Answers the question decide: the best run of each budget, alternatives, and the most informative next runs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import duckdb

from rbpx.display.view import Table, View, amount, decimal, magnitude, share, state, text, whole, with_ends, written
from rbpx.display.vocabulary import in_digits, percent, rough, short, spoken
from rbpx.errors import RbpxError
from rbpx.laws.families.shift import fit_shift, is_surface
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, flat
from rbpx.laws.names import Axis
from rbpx.laws.prediction.calibration import error_in_sd
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.surface.averaged import FAR_COMPUTE, BudgetTest, backtest_budgets, forms_to_mix, predict_averaged
from rbpx.laws.surface.decision import BestRun, best_run, best_run_with_serving, irreducible
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.next_runs import TENFOLD, best_values, candidates, next_runs, predictions
from rbpx.laws.surface.outliers import farthest_of
from rbpx.questions.decide import DecideKeys
from rbpx.questions.decide.figures import figures
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.points.outliers import outlier_rows, said_of_largest, said_of_runs, tested
from rbpx.runs.points.surfaces import MOST_REPLICATES, Trained, doubts_of_points, refuse_routed, trained_quantities
from rbpx.runs.select.selections import whole_trainings
from rbpx.runs.select.trainings import TrainingGroup, plain_beside
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

_NEXT: Final = 3  # runs by default
_LONG: Final = 2.0  # times the largest D / S


class Decision(NamedTuple):
    """The answer about one quantity.

    Attributes:
        fits: of each form that is averaged.
        budget_tests: measured losses of larger budgets with predictions from smaller ones.
        rows: of the kinds runs, best, served, asked, worth, outlier, largest, next. E is unknown where size and tokens
            vary together. Where smaller runs do not predict the largest, the first four kinds are repeated without
            these.
    """

    trained: Trained
    fits: Sequence[Surface]
    budget_tests: Sequence[BudgetTest]
    rows: Sequence[Record]

    def of_kind(self, *kinds: str, method: str = COMBINED) -> list[Record]:
        """Returns its rows of some kinds: answers from all runs, or those without the largest."""
        return [row for row in self.rows if row["kind"] in kinds and row.get("method", method) == method]


_THREE: Final = partial(spoken, digits=3)
_RUNS: Final = {"served": "best with serving", "best": "best", "asked": "asked for"}
_LESS: Final = {"half": (2, "half the size"), "fivefold": (5, "a fifth of the size")}
CHOICES: Final = View[Record](
    "best",
    text("run", "run"),
    with_ends("S", "S", None, _THREE, ends_spare=3),
    with_ends("D", "D", None, _THREE, ends_spare=5),
    magnitude("C", "C", means="training FLOPs, 6 S D"),
    with_ends("loss", "y", None, in_digits(4), "of a new run, 95 % of which lie in the interval", ends_spare=1),
    with_ends("more loss", "more", None, percent, "than the best run of as many FLOPs", ends_spare=2),
    share("saved", "saved", None, 1, "of the FLOPs of training and serving, beside the best run", 4),
    state(),
)
NEXT: Final = View[Record](
    "next",
    whole("run", "rank"),
    amount("S", "S"),
    amount("D", "D"),
    magnitude("C = 6 S D", "C"),
    share("narrower by", "narrowed", means="standard deviation of its logarithm, given the runs above"),
    decimal("sd before", "sd_before", spare=1),
    decimal("sd after", "sd_after", spare=1),
    written("per 1e18 FLOPs", "per_flop", lambda row: row["per_flop"] * 1e18, rough, spare=3),
    text("plan", "plan", means="most per_flop, or the best use of a budget", spare=2),
)


def answer(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: DecideKeys) -> Result:
    """Decides what to train next, by cross-entropy unless quantities are named; stores no fits."""
    quantities = trained_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    plain = plain_beside(connection, request, group)
    beside = [] if plain is None else trained_quantities(connection, plain, request)
    plain_of = {(each.law, each.k): each for each in beside}
    decisions = [
        _decide(group, tested(each, request), plain_of.get((each.law, each.k)), request) for each in quantities
    ]
    rows = alike([row for each in decisions for row in each.rows])
    drawn = partial(figures, group, decisions, request.seed)
    asks, notes = request.next is not None, [*said_of_runs(group, [each.trained for each in decisions])]
    notes += [line for each in decisions for line in _said_of_largest(each)]
    titles = [f"{each.trained.title}: " if len(decisions) > 1 else "" for each in decisions]
    said = [f"{title}{each}" for title, of in zip(titles, decisions, strict=True) for each in _said(of, asks)]
    return Result([group], rows, [*_tables(group, decisions, asks)], said, drawn, notes=notes)


def _decide(group: TrainingGroup, trained: Trained, plain: Trained | None, request: DecideKeys) -> Decision:
    refuse_routed(trained)
    runs, seed = trained.runs, request.seed
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    forms, n_replicates = forms_to_mix(runs), min(request.resamples, MOST_REPLICATES)
    asks_next = request.next is not None
    fits = [fit_surface(runs, form, n_replicates=n_replicates, collinear=asks_next, **options) for form in forms]
    form = min(fits, key=lambda fit: math.inf if fit.bic is None else fit.bic)
    budget_tests = backtest_budgets(runs, forms, **options)
    reasons = doubts_of_points(group, trained, form)
    named = {**group.names(), "law": trained.law, "k": trained.k, "form": form.form}
    is_fitted, is_line = any(fit.surface is not None for fit in fits), Status.collinear_design in reasons
    tells_apart = is_fitted and not is_line
    E = irreducible(fits, seed) if tells_apart else NO_ESTIMATE
    rows = [_row("runs", named | {"method": COMBINED}, reasons, n_points=form.n_points, n_runs=form.n_runs, E=E)]
    last = [*outlier_rows(group, [trained]), *_largest(named, budget_tests)]
    if not is_fitted and set(form.reasons) != {Status.collinear_design}:
        return Decision(trained, fits, budget_tests, rows + last)
    wanted = request.flops or [form.only_budget or TENFOLD * float(runs.along(Axis.C).max())]
    rows += _answers(named | {"method": COMBINED}, fits, budget_tests, reasons, wanted, request)
    without = trained.without_largest
    if without is not None:
        fits_of_rest = [fit_surface(without.runs, each, n_replicates=0, **options) for each in forms]
        if any(fit.surface is not None for fit in fits_of_rest):
            of_rest, E_of_rest = named | {"method": WITHOUT_LARGEST}, irreducible(fits_of_rest, seed)
            counts = {"n_points": len(without.runs.S_N), "n_runs": without.runs.n_groups}
            rows.append(_row("runs", of_rest, reasons, **counts, E=E_of_rest))
            tests = backtest_budgets(without.runs, forms, **options)
            rows += _answers(of_rest, fits_of_rest, tests, reasons, wanted, request)
    plain = plain and tested(plain, request)
    if plain is not None and is_surface(plain.runs, runs) and not (plain.runs.repeats or runs.repeats):
        worth = fit_shift(plain.runs, runs, Axis.C, **options)
        start, end = worth.apart or (None, None)
        places: list[tuple[float | None, Estimate, list[Status]]]
        places = [(at.C, at.value, [at.status]) for at in worth.at] or [(None, NO_ESTIMATE, [])]
        rows += [
            _row("worth", named, [*held, *worth.reasons], multiplier=value, C=C, apart_from=start, apart_to=end)
            for C, value, held in places
        ]
    return Decision(trained, fits, budget_tests, [*rows, *last, *_next(named, fits, wanted, tells_apart, request)])


def _answers(
    named: Record,
    fits: Sequence[Surface],
    budget_tests: Sequence[BudgetTest],
    reasons: Sequence[Status],
    wanted: Sequence[float],
    request: DecideKeys,
) -> Iterator[Record]:
    runs, seed, points = fits[0].runs, request.seed, request.points_to_predict()
    T, within = request.inference_tokens, request.inference_within
    found: list[tuple[str, BestRun | None]] = []
    if any(map(fits[0].finds_best, wanted)):
        found += [("best", best_run(fits, C, budget_tests, seed)) for C in wanted]
        if T:
            C = wanted[0]
            served = best_run(fits, C, budget_tests, seed, T) if within else best_run_with_serving(fits, C, T, seed)
            found.append(("served", served))
    for kind, best in found:
        if best is not None:
            serves: Record = {"T": T, "within": within} if kind == "served" else {}
            other = "beyond" if serves else "ratio_beyond"
            doubts = _beyond(best.beyond, best.ratio_beyond if serves else 1.0)
            doubts += [] if best.S.value else [Status.unreachable]
            yield _row(kind, named, [*reasons, *doubts], **vars(best) | {other: None}, **serves)
    over, most = predict_averaged(fits, points, budget_tests) if points else [], float(runs.along(Axis.C).max())
    for (S, D), at in zip(points, over, strict=True):
        doubts = _beyond(6 * S * D / most, D / S / float((runs.D_N / runs.S_N).max()))
        yield _row("asked", named, [*reasons, *doubts], S=S, D=D, y=at.y)


def _row(kind: str, named: Record, doubts: Sequence[Status], **values: Any) -> Record:
    held = in_order(doubts)
    doubted = {"status": first_of(held).value, "reasons": [reason.value for reason in held]}
    return {"kind": kind, **named, **flat(values), **doubted}


def _beyond(farther: float, longer: float = 1.0) -> list[Status]:
    """Warns of an extrapolation, by its factors of compute and of tokens per parameter."""
    return [Status.beyond] if farther > FAR_COMPUTE or longer > _LONG else []


def _largest(named: Record, budget_tests: Sequence[BudgetTest]) -> Iterator[Record]:
    nearest = min(budget_tests, key=lambda test: (test.gap, -int(test.fitted_N.sum())), default=None)
    for test in () if nearest is None else nearest.held_out:
        off = error_in_sd(test.predicted, test.measured)
        if off is not None:
            at: Record = {"S": test.S, "D": test.D, "measured": test.measured, "in_sd": off, "held": test.is_inside}
            yield {"kind": "largest", **named, **at, **flat({"y": test.predicted})}


def _next(
    named: Record, fits: Sequence[Surface], budgets: Sequence[float], tells_apart: bool, request: DecideKeys
) -> Iterator[Record]:
    runs, points = fits[0].runs, request.points_to_predict()
    C_N = runs.along(Axis.C)
    most, asks = float(C_N.max()), request.next is not None
    flops = request.flops[0] if request.flops else math.inf if asks else most
    if not len(candidates(runs, flops)[0]) or not (tells_apart or asks):  # off their line it is unbounded
        if asks:
            raise RbpxError(
                f"flops={flops:g} pays for no run that informs: the least that there is took {C_N.min():.3g}"
            )
        return
    budgets = [TENFOLD * most] if asks else budgets
    wanted, target = best_values(runs, budgets), f"for the best run of {', '.join(map(short, budgets))} FLOPs"
    if asks and points:
        wanted, target = predictions(points), f"at {', '.join(f'S = {_THREE(S)}, D = {_THREE(D)}' for S, D in points)}"
    plans = next_runs(fits, wanted, request.next or _NEXT, flops, request.seed)
    for plan in plans if asks else plans[-1:]:
        of_plan = {
            "kind": "next",
            **named,
            "target": f"the prediction {target}",
            "plan": plan.name,
            "next_narrows": plan.next_narrows,
        }
        yield from [of_plan | {"rank": n, **run} for n, run in enumerate(plan.runs, 1)] or [of_plan]


def _tables(group: TrainingGroup, decisions: Sequence[Decision], asks: bool) -> Iterator[Table]:
    for n, of in enumerate(decisions, 1):
        quantity = f": {of.trained.title}" if len(decisions) > 1 else ""
        if rows := [*_choices(of)]:
            yield CHOICES.table(f"What else costs what{quantity}", alike(rows), group.title, brief=not asks)
        if rows := [row for row in of.of_kind("next") if "S" in row]:
            table = NEXT.table(
                f"Runs that make {rows[0]['target']} more certain{quantity}", rows, group.title, brief=asks
            )
            yield replace(table, name=f"next-{n}")


def _choices(of: Decision) -> Iterator[Record]:
    first = next(iter(of.of_kind("best")), None)
    for method, less in {COMBINED: "", WITHOUT_LARGEST: " without the largest"}.items():
        for row in of.of_kind(*_RUNS, method=method):
            at, S = row | {"run": f"{_RUNS[row['kind']]}{less}"}, row["S"]
            yield at if S is None else at | {"C": 6 * S * row["D"]}
            if row is first and S is not None:
                yield from _smaller(of, row)


def _smaller(of: Decision, best: Record) -> Iterator[Record]:
    S, D, longest = best["S"], best["D"], float((of.trained.runs.D_N / of.trained.runs.S_N).max())
    for key, (times, name) in _LESS.items():
        if (more := best[key]) is not None:
            doubts = in_order([*map(Status, best["reasons"]), *_beyond(1.0, D / S * times**2 / longest)])
            less = {"S": S / times, "D": D * times, "y": best["y"] and best["y"] * (1 + more), "C": best["C"]}
            less |= {"more": more, "more_lo": best[f"{key}_lo"], "more_hi": best[f"{key}_hi"], "reasons": doubts}
            yield {"run": name} | less


def _said(of: Decision, asks: bool) -> Iterator[str]:
    (about,), following = of.of_kind("runs"), [*_said_of_next(of, asks)]
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
    yield from _said_of_worth(of)
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
    said = f"Train {_THREE(row['S'])} parameters on {_THREE(row['D'])} tokens"
    if serves and not row["within"]:
        saved = "" if row["saved"] is None else f", which saves {row['saved']:.1%} of all FLOPs"
        said += f" to serve {spoken(row['T'])} at the loss of the best run of {budget}{saved}"
    else:
        loss = "loss" if of.trained.law == "cross_entropy" else of.trained.title
        said += f": {loss} {_between(row, 'y', in_digits(4))}, the best of {budget}"
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


def _said_of_next(of: Decision, asks: bool) -> Iterator[str]:
    for row in of.of_kind("next"):
        plan = [each for each in of.of_kind("next") if each["plan"] == row["plan"]]
        if "S" not in row:
            yield from [f"No run makes {row['target']} 2 % more certain."] if asks else ()
        elif row["rank"] == 1:
            n, all_of_them = len(plan), 1 - plan[-1]["sd_after"] / row["sd_before"]
            yield (
                f"Train next {_THREE(row['S'])} parameters on {_THREE(row['D'])} tokens ({short(row['C'])} FLOPs): "
                f"that makes {row['target']} {row['narrowed']:.0%} more certain"
                f"{f', {n} such runs {all_of_them:.0%}' if n > 1 else ''}."
            )


def _between(row: Record, name: str, how: Any = spoken) -> str:
    value, lo, hi = (row[f"{name}{end}"] for end in ("", "_lo", "_hi"))
    return how(value) if lo is None or hi is None else f"{how(value)} ({how(lo)} to {how(hi)})"


def _said_of_worth(of: Decision) -> Iterator[str]:
    worth, variant = of.of_kind("worth"), f"Variant {of.trained.members[0].variant}"
    if len(worth) == 1:
        yield f"{variant} cannot be compared with runs without a variant: {Status(worth[0]['status']).label}."
    elif worth:
        least, middle, most = worth[:3]
        where, (start, end) = "no difference shows", (middle["apart_from"], middle["apart_to"])
        if start is not None:  # at an end of the compared range
            is_above = end > most["C"] * 0.999
            ends = f"from {short(start)} FLOPs on" if is_above else f"up to {short(end)} FLOPs"
            where = f"it {'pays' if (most if is_above else least)['multiplier'] > 1 else 'costs'} {ends}"
        times = (f"{_between(at, 'multiplier', in_digits(3))} at {short(at['C'])} FLOPs" for at in worth[:3])
        yield f"{variant} is worth so many times the compute of runs without a variant: {', '.join(times)}; {where}."


QUESTION = of_each(answer, select=whole_trainings)
