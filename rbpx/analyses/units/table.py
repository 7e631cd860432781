"""Units across tokenizers: runs of any families in, the runs on one text side by side out."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.units.analysis import GroupUnits, RunUnits
from rbpx.analyses.units.conversion import PERCENTS, SHARES
from rbpx.display.numbers import UNKNOWN, number, rough, with_ends
from rbpx.display.tables import console, grid, put

_Cells = Callable[[RunUnits], list[str]]


def show(results: Sequence[GroupUnits]) -> None:
    """Print a block of tables for each text, with every family that was measured on it."""
    screen = console()
    for text in dict.fromkeys(_text(units) for units in results):
        _print_text(screen, [units for units in results if _text(units) == text])
    ties = ", ".join(dict.fromkeys(units.group.ties.value for units in results))
    shares = " and ".join(f"V/{1 / share:,.0f}" for share in SHARES)
    screen.print(
        "Bits per byte: nats of the scored tokens / ln 2 / bytes (UTF-8) of the text that they encode; the first token "
        "and special tokens are neither scored nor counted. A family's bits per byte are its nats per token times "
        "one constant, so their law in S has the alpha of cross-entropy (fit laws=cross_entropy). Nats per token and "
        f"ranks compare models of one tokenizer; bits per byte, rank/V and RBP at k = {shares} compare any. Ties "
        f"{ties}. 95 % intervals over documents.",
        soft_wrap=True,
    )
    if any(each.units.bits_per_byte.value is None for units in results for each in units.runs):
        screen.print(
            "Bits per byte of –: the run was measured before bytes were counted by token; remove it with `store rm` "
            "and measure again.",
            soft_wrap=True,
        )


def _text(units: GroupUnits) -> tuple[str, str | None]:
    return units.group.first.dataset, units.group.first.text_hash


def _print_text(screen: Console, results: Sequence[GroupUnits]) -> None:
    dataset = results[0].group.first.dataset
    columns = ["size", "S", "V", "tokens", "nats/token", "95 %", "bits/byte", "95 %", "tok/byte", "run"]
    spare = ("V", "S", "tokens", "run")
    _print_rows(screen, f"{dataset}: nats per token and bits per byte", columns, results, _lengths, spare)
    columns = ["size", *(cell for percent in PERCENTS for cell in (_quantile(percent), "95 %"))]
    _print_rows(screen, f"{dataset}: rank of the true token", columns, results, _ranks)
    columns = ["size", *map(_quantile, PERCENTS)]
    columns += [cell for share in SHARES for cell in (f"V/{1 / share:.0f}", "95 %")]
    _print_rows(screen, f"{dataset}: rank/V, and RBP at k of the same share of V", columns, results, _relative)


def _print_rows(
    screen: Console,
    title: str,
    columns: list[str],
    results: Sequence[GroupUnits],
    cells: _Cells,
    spare: Sequence[str] = (),
) -> None:
    table = grid(title, columns, spare=spare)
    for units in results:
        table.add_section()
        first = units.group.first
        table.add_row(f"[bold]{escape(first.family)}{f' {escape(first.revision)}' if first.revision else ''}[/bold]")
        for each in units.runs:
            table.add_row(f" {escape(each.run.size)}", *cells(each))
    put(screen, table)


def _quantile(percent: int) -> str:
    return "median" if percent == 50 else f"{percent} %"


def _lengths(each: RunUnits) -> list[str]:
    units, run = each.units, each.run
    return [
        f"{run.non_embedding_params:,}",
        *(UNKNOWN if n is None else f"{n:,}" for n in (run.vocab_size, run.n_tokens)),
        *with_ends(units.nats_per_token, 3),
        *with_ends(units.bits_per_byte, 3),
        number(units.tokens_per_byte.value),
        " ".join(run.run_ids),
    ]


def _ranks(each: RunUnits) -> list[str]:
    cells = []
    for rank in each.units.rank.values():
        ends = UNKNOWN if rank.lo is None or rank.hi is None else f"{rank.lo:,g}..{rank.hi:,g}"
        cells += [UNKNOWN if rank.value is None else f"{rank.value:,g}", ends]
    return cells


def _relative(each: RunUnits) -> list[str]:
    quantiles = [rough(rank.value) for rank in each.units.relative_rank.values()]
    return quantiles + [cell for rbp in each.units.rbp.values() for cell in with_ends(rbp, 3)]
