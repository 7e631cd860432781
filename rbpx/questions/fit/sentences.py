"""Writes the sentences of fit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from rbpx.display.fixed_parameters import said_of_given
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, law_title, short
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import LOGNORMAL, Axis, Method
from rbpx.laws.prediction.verdict import SupportedForm
from rbpx.runs.group import Group
from rbpx.runs.laws import GroupLaws
from rbpx.runs.points.one_run import said_of_one_run, said_of_tokens
from rbpx.status import Status
from rbpx.store.store import Record

_METHODS: Final = {
    Method.ols: "least squares",
    Method.weighted: "weighted least squares",
    Method.offset: "least squares with an offset E",
    Method.robust: "Huber's loss",
}

_NO_LAW: Final = (Status.no_trend, Status.bends)


def by_methods(methods: Iterable[Method]) -> str:
    """Names how laws are fitted."""
    return ", ".join(_METHODS[method] for method in methods)


def largest(group: Group) -> str:
    """Describes the run at the end of the axis."""
    last = group.runs[-1]
    return f"the largest {AXES[group.axis].one}, {last.label if group.axis is Axis.S else short(last.x)}"


def asked_for(rows: Sequence[Record]) -> list[Record]:
    """One row for each law, by the first method; that with E where the points call for it."""
    offset = {(row["law"], row["k"]): row for row in rows if row["method"] == Method.offset.value}
    first = [row for row in rows if row["method"] == rows[0]["method"]]
    return [offset.get((row["law"], row["k"]), row) if _calls_for_E(row) else row for row in first]


def _calls_for_E(row: Record) -> bool:
    choice = row["params"].get("choice")
    return choice is not None and choice["form"] == SupportedForm.offset.value


def headline(laws: Sequence[Record]) -> tuple[Record | None, Record | None]:
    """The rows of RBP at the smallest k and of cross-entropy, None without numbers."""
    fitted = [law for law in asked_for(laws) if law["alpha"] is not None]
    first = {law["law"]: law for law in reversed(fitted)}
    return first.get("rbp"), first.get("cross_entropy")


def at_tenfold(row: Record) -> str:
    """Renders the change of a law at ten times its largest place; its E stays."""
    params, alpha = row["params"], row["alpha"]
    E, change = params["E"] or 0.0, 1 - 10**-alpha
    if E:
        ln_power = params["ln_C_ref"] - alpha * math.log(max(params["S"]) / params["S_ref"])
        change /= 1 + E * math.exp(-ln_power)
    digits = 0 if abs(change) >= 0.1 or not E else 1
    return f"{abs(change):.{digits}%} {'lower' if change >= 0 else 'higher'}"


def _in_brackets(estimate: Estimate) -> str:
    return interval_of(estimate).replace(" (", ", ").rstrip(")")


def against_lognormal(rows: Sequence[Record]) -> Iterator[str]:
    """Says how far what the lognormal implies lies from what was measured."""
    of = {(row["law"], row["k"]): np.array(row["params"]["y"], float) for row in rows}
    told = []
    for implied, measured in ((LOGNORMAL[0], ("rbp", 1)), (LOGNORMAL[1], ("cross_entropy", None))):
        if (implied, None) in of and measured in of and np.all(np.isfinite(of[implied, None])):
            off = of[implied, None] / of[measured] - 1
            told.append(f"{law_title(*measured)} by {off.min():+.0%} to {off.max():+.0%}")
    if told:
        yield f"What the lognormal of the ranks implies is off {' and '.join(told)}."


def _ends(row: Record, axis: Axis) -> str:
    """Renders what a tenfold step changes at either end of a law that bends."""
    S, y = (np.log(np.abs(row["params"][key])) for key in ("S", "y"))
    half = len(S) // 2 + 1
    small, large = (1 - 10 ** np.polyfit(S[part], y[part], 1)[0] for part in (slice(half), slice(-half, None)))
    step = "a tenfold size" if axis is Axis.S else f"a tenfold {axis.value}"
    return f"{step} took off {small:.0%} at the small end and {large:.0%} at the large one"


def sentences(laws: GroupLaws, rows: Sequence[Record]) -> Iterator[str]:
    """The change per tenfold size and how many laws pass, then sentences on fixed parameters and single runs."""
    words = AXES[laws.group.axis]
    if laws.group.n_sizes < 3:
        are, names = "is" if len(laws.group.runs) == 1 else "are", ", ".join(run.label for run in laws.group.runs)
        points = number_of(laws.group.n_sizes, words.point)
        yield f"There {are} {points} ({names}); a law needs at least 3: measure or import more."
        return
    told_rows, rows = [row for row in headline(rows) if row is not None], asked_for(rows)
    lower, none, bent, fitted = list[str](), list[str](), list[str](), [row for row in rows if row["alpha"] is not None]
    told_rows = told_rows or fitted[:2]
    for row in told_rows:
        name, status = law_title(row["law"], row["k"]), Status(row["status"] or Status.ok)
        if status is Status.bends:
            bent.append(f"{name} bends: {_ends(row, laws.group.axis)}")
        elif status in _NO_LAW:
            none.append(f"{name} ({status.label})")
        else:
            each = [("α", row, "alpha"), ("E", row["params"], "E")][: 2 if row["params"]["E"] else 1]
            constants = "; ".join(f"{sign} {_in_brackets(estimate_in(of, key))}" for sign, of, key in each)
            doubt = "" if status is Status.ok else f"; {status.label}"
            lower.append(f"{name} is {at_tenfold(row)} ({constants}{doubt})")
    start = f"from the largest {words.one}, " if any(row["params"]["E"] for row in told_rows) else ""
    told = [f"{start}{words.at_tenfold} {' and '.join(lower)}"] if lower else []
    told += (
        [f"{' and '.join(none)} {'is no power law' if len(none) == 1 else 'are no power laws'} here"] if none else []
    )
    told += bent
    told += [] if fitted else ["no law has numbers here"]
    n, stands = len(rows), sum(row["status"] == Status.ok.value for row in rows)
    counted = {
        0: f"none of {n} laws passes",
        1: f"1 of {n} laws passes",
        n: f"{'both' if n == 2 else f'all {n}'} laws pass",
    }
    told += [f"{counted.get(stands, f'{stands} of {n} laws pass')} every check"] if n > 1 else []
    yield f"{told[0][0].upper()}{'; '.join(told)[1:]}."
    if (said := said_of_tokens(laws.group.runs)) and any(Status.tokens in (law.fit.reasons or ()) for law in laws.laws):
        yield f"{said}."
    for law in laws.laws:
        yield from said_of_given(law_title(law.law, law.k), law.fit.pinned)
    yield from said_of_one_run(law for law in laws.laws if Status.one_run in (law.fit.reasons or ()))
