"""Exponents: pairs of a family and a text in; their exponents, how far they differ, and the mean over them out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.exponents.analysis import UP_TO, Exponents, Pair
from rbpx.display.numbers import UNKNOWN, number, span, with_ends
from rbpx.display.tables import console, grid, print_notes, put


def show(results: Sequence[Exponents]) -> None:
    """Print the exponents of each pair, the same for the tokens that improve, and the means."""
    screen = console()
    for result in results:
        ks = sorted({k for pair in result.pairs for k in pair.alphas})
        columns = ["text", "family", "CE", *(f"k = {k:,}" for k in ks), "k = 1 - CE", "95 % of it", "for each ln k"]
        others = [f"k = {k:,}" for k in ks if k not in (1, UP_TO)]
        spare = (*([f"k = {UP_TO}"] if UP_TO in ks else []), "for each ln k", *others, "95 % of drift")
        table = grid("Exponents of the laws in S", [*columns, "95 % of drift"], left=2, spare=spare)
        for pair in result.pairs:
            table.add_row(*_row(pair, ks))
        put(screen, table)
        if any(pair.classes for pair in result.pairs):
            _print_classes(screen, result)
        of_k = f"{number(result.drift.value, 4)} ({span(result.drift.lo, result.drift.hi, 4)})"
        screen.print(
            f"Mean over {len(result.pairs)}: alpha of -ln RBP_1 less that of CE {number(result.difference.value, 4)} "
            f"({span(result.difference.lo, result.difference.hi, 4)}); alpha changes by {of_k} for each ln k.",
            soft_wrap=True,
        )
    print_notes(
        screen,
        "k = 1 - CE: alpha of -ln RBP_1 less that of cross-entropy, from the law of their ratio, with an interval over "
        f"documents and models. For each ln k: change of alpha up to k = {UP_TO}. Intervals of the means: other "
        "families and other texts (clusters of both). Improving: tokens whose ids `improve` finds to get better with "
        "size; chosen on the same text, so their own exponents are a little too large.",
        (result.status for result in results),
    )


def _row(pair: Pair, ks: Sequence[int]) -> list[str]:
    alphas = [number(pair.alphas.get(k), 3) for k in ks]
    names = [escape(pair.title), escape(pair.family)]
    ends = [*with_ends(pair.difference), *with_ends(pair.drift)]
    return [*names, number(pair.alpha_cross_entropy, 3), *alphas, *ends]


def _print_classes(screen: Console, result: Exponents) -> None:
    columns = ["text", "family", "tokens", "share", "alpha of CE", "k = 1 - CE", "95 % interval"]
    table = grid("The same by whether a token improves", columns, left=3)
    for pair in result.pairs:
        for each in pair.classes:
            difference = UNKNOWN if each.difference is None else number(each.difference)
            ends = span(each.difference_lo, each.difference_hi)
            loss = number(each.alpha_cross_entropy, 3)
            names = [escape(pair.title), escape(pair.family)]
            table.add_row(*names, each.tokens, f"{each.share:.0%}", loss, difference, ends)
    put(screen, table)
