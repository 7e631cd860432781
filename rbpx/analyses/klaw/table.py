"""The law in k: fitted groups in; table 1 of the RBP paper and the exchange rate between k and size out."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws, doubts
from rbpx.display.along import LARGEST, in_axis, place, place_heading, print_group_notes
from rbpx.display.fit_cells import constant
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, rough, short, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.names import Axis


def show(results: Sequence[KLaws]) -> None:
    """Print R2 and slope of each model on each dataset, as in table 1, then what ten times the k is worth in size."""
    screen = console()
    of_sizes = [laws for laws in results if laws.group.axis is Axis.S]  # elsewhere a size has several rows, below
    for family in dict.fromkeys(laws.group.first.family for laws in of_sizes):
        of_family = [laws for laws in of_sizes if laws.group.first.family == family]
        table = grid("Laws in k: -ln RBP_k = C · k^slope at fixed S", ["size", *("R2   slope" for _ in of_family)])
        table.add_row("", *(f"[bold]{escape(laws.group.title)}[/bold]" for laws in of_family))
        sizes = dict.fromkeys(law.run.size for laws in of_family for law in laws.laws)
        for size in sizes:
            table.add_row(escape(size), *(_pair(laws, size) for laws in of_family))
        put(screen, table)
    axis = results[0].group.axis
    level = [in_axis(column, axis) for column in ("C", "95 % of C")]
    columns = ["size", "S", *place_heading(axis), "alpha_k", "95 % of it", *level, "R2", "neighbours"]
    columns += [f"{axis.value} times", "95 % interval", "rate"]
    spare = ("neighbours", "S", "R2", *level)
    for laws in results:
        table = grid(f"{laws.group.title}: k = {STEP} against {LARGEST[axis]}", [*columns, "status"], spare=spare)
        for law in laws.laws:
            table.add_row(*_exchange_row(law))
        put(screen, table)
    ks, x = ", ".join(map(str, results[0].k_grid)), axis.value
    print_notes(
        screen,
        f"k = {ks}; ties {results[0].group.ties.value}; least squares of ln(-ln RBP_k) on ln k. Interval of alpha_k: "
        "other documents, at all k together, as hits at one k are hits at every larger k. Neighbours: correlation of "
        f"the residuals of neighbouring k. {x} times: {_MORE[axis]} to do at k = 1 what this one does at k = {STEP}, "
        f"{STEP}^(alpha_k / alpha_{x}) with alpha_{x} of the law in {x} at k = 1; – for an end: no {LARGEST[axis]} is "
        f"known to suffice. Rate: d ln {x} / d ln k at constant RBP. Where the law in k bends, alpha_k is that of the "
        f"best line over these k, and {x} times and rate are local: they take alpha between k = 1 and {STEP} alone.",
        (status for laws in results for status in doubts(laws)),
    )
    print_group_notes(screen, [laws.group for laws in results])


_MORE = {
    Axis.S: "how many times larger a model must be",
    Axis.D: "on how many times more tokens a model must be trained",
    Axis.C: "how many times more compute a model must have had",
    Axis.step: "how many times more steps a model must be trained",
}


def _pair(laws: KLaws, size: str) -> str:
    law = next((law for law in laws.laws if law.run.size == size), None)
    if law is None or law.fit.alpha is None:
        return UNKNOWN
    return f"{number(law.fit.r2, 3)} {-law.fit.alpha:.3f}"


def _exchange_row(law: KLaw) -> list[str]:
    fit, exchange = law.fit, law.exchange
    worth = [UNKNOWN] * 3
    if exchange is not None:
        ends = f"{rough(exchange.lo)}..{rough(exchange.hi)}" if exchange.lo is not None else UNKNOWN
        worth = [short(exchange.factor), ends, f"-{exchange.rate:.2f}"]
    return [
        escape(law.run.size),
        f"{law.run.non_embedding_params:,}",
        *place(law.run),
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi, 3),
        *constant(fit),
        number(fit.r2, 3),
        number(fit.params.get("residual_autocorrelation"), 2),
        *worth,
        status_name(fit.status),
    ]
