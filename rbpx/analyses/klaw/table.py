"""The law in k: fitted groups in, table 1 of the RBP paper and the exchange rate between k and size out."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws, doubts
from rbpx.display.constants import constant
from rbpx.display.tables import UNKNOWN, console, grid, number, put, remedies, rough, short, span, status_name


def show(found: Sequence[KLaws]) -> None:
    """Print R2 and slope of each model on each dataset, as table 1 does, then what a tenfold k is worth in size."""
    screen = console()
    for family in dict.fromkeys(laws.group.first.family for laws in found):
        of_family = [laws for laws in found if laws.group.first.family == family]
        table = grid("Laws in k: -ln RBP_k = C · k^slope at fixed S", ["size", *("R2   slope" for _ in of_family)])
        table.add_row("", *(f"[bold]{escape(laws.group.title)}[/bold]" for laws in of_family))
        sizes = dict.fromkeys(law.run.size for laws in of_family for law in laws.laws)
        for size in sizes:
            table.add_row(escape(size), *(_pair(laws, size) for laws in of_family))
        put(screen, table)
    columns = ["size", "S", "alpha_k", "95 % interval", "C", "95 % of C", "R2", "S times", "95 % interval", "rate"]
    spare = ("S", "C", "95 % of C", "R2")
    for laws in found:
        table = grid(f"{laws.group.title}: k = {STEP} against size", [*columns, "status"], spare=spare)
        for law in laws.laws:
            table.add_row(*_exchange_row(law))
        put(screen, table)
    ks = ", ".join(map(str, found[0].k_grid))
    screen.print(
        f"k = {ks}; ties {found[0].group.ties.value}; least squares of ln(-ln RBP_k) on ln k. S times: how much "
        f"larger a model does at k = 1 what this one does at k = {STEP}, {STEP}^(alpha_k / alpha_S) with alpha_S of "
        "the law in S at k = 1; an end of – means that no size is known to do it. Rate: d ln S / d ln k at constant "
        "RBP.",
        soft_wrap=True,
    )
    for line in remedies(status for laws in found for status in doubts(laws)):
        screen.print(line, soft_wrap=True)


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
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi, 3),
        *constant(fit),
        number(fit.r2, 3),
        *worth,
        status_name(fit.status),
    ]
