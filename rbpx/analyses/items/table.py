"""Items of tasks: scores and exact matches in, tables out."""

from collections.abc import Sequence

from rbpx.analyses.items.analysis import GroupItems, RunItems
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, short, span, with_ends
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.outcome_counts import Correction


def show(results: Sequence[GroupItems]) -> None:
    """Print the scores of each group, then its exact matches."""
    screen = console()
    for items in results:
        is_text = all(each.scores.acc.value is None for each in items.runs)
        table = grid(
            f"{items.group.title}: {'texts' if is_text else 'items'}",
            _columns(is_text),
            2,
            () if is_text else ("acc_bytes", "perplexity"),
        )
        for each in items.runs:
            table.add_row(*_names(each), *(_of_text(each) if is_text else _of_items(each)))
        put(screen, table)
        if is_text:
            continue
        columns = ["size", "slice", "k", "RBP_k", "exact match", "95 %", "independent", "rho", "with rho"]
        table = grid(f"{items.group.title}: exact match at k", columns, 2, ("RBP_k",))
        for each in items.runs:
            for match in each.matches:
                table.add_row(
                    *_names(each),
                    f"{match.k:,}",
                    number(match.rbp),
                    *with_ends(match.measured),
                    number(match.independent.value),
                    number(match.rho, 3),
                    number(match.correlated.value),
                )
        put(screen, table)
        _print_laws(items)
    ties = ", ".join(dict.fromkeys(items.group.ties.value for items in results))
    tied = sum(each.scores.n_tied for items in results for each in items.runs if each.part is None)
    print_notes(
        screen,
        "acc: by log-likelihood, or greedily where there are no choices; p: how likely guessing is to do as well; "
        "acc_norm and acc_bytes: over the characters "
        "and bytes of a choice; perplexity: of a whole target. Exact match: all tokens of the target have rank <= k; "
        "independent: what RBP_k to the power of its tokens gives; with rho: what hits that correlate within an item "
        f"as measured give. Laws of emergence: items of n tokens succeed with RBP_k^n, or with hits that correlate as "
        "measured or as the successes call for (free); -ln RBP_k = C S^-alpha, by maximum likelihood; least AIC fits "
        f"best. Ties {ties}. 95 % intervals over items."
        + (f" {tied} items are greedy but for a tie, which the lowest id would win." if tied else ""),
        (fit.status for items in results for law in items.emergence for fit in law.fits.values()),
    )


def _print_laws(items: GroupItems) -> None:
    if not items.emergence:
        return
    columns = ["k", "hits", "alpha", "95 % interval", "rho", "95 % of rho", "AIC", "status"]
    table = grid(f"{items.group.title}: the law of emergence on items", columns, 2)
    table.columns[-1].justify = "left"
    for law in items.emergence:
        for correction, fit in law.fits.items():
            table.add_row(
                f"{law.k:,}",
                _HITS[correction],
                number(fit.alpha),
                span(fit.alpha_lo, fit.alpha_hi),
                number(fit.r, 3),
                span(fit.r_lo, fit.r_hi, 3),
                number(fit.aic, 1),
                status_name(fit.status),
            )
    put(console(), table)


_HITS = {Correction.none: "independent", Correction.measured: "measured rho", Correction.free: "free rho"}


def _columns(is_text: bool) -> list[str]:
    if is_text:
        return ["size", "slice", "texts", "bits/byte", "95 %", "byte ppl", "word ppl"]
    return [
        "size",
        "slice",
        "items",
        "chance",
        "acc",
        "95 %",
        "p",
        "acc_norm",
        "95 %",
        "acc_bytes",
        "perplexity",
        "bits/byte",
    ]


def _names(each: RunItems) -> list[str]:
    return [each.run.size, "" if each.part is None else each.part]


def _of_items(each: RunItems) -> list[str]:
    scores = each.scores
    return [
        f"{scores.n_items:,}",
        UNKNOWN if scores.chance is None else number(scores.chance, 3),
        *with_ends(scores.acc, 3),
        UNKNOWN if scores.p_chance is None else f"{scores.p_chance:.1e}",
        *with_ends(scores.acc_norm, 3),
        number(scores.acc_bytes.value, 3),
        short(scores.perplexity.value),
        number(scores.bits_per_byte.value, 3),
    ]


def _of_text(each: RunItems) -> list[str]:
    scores = each.scores
    return [
        f"{scores.n_items:,}",
        *with_ends(scores.bits_per_byte),
        short(scores.byte_perplexity.value),
        short(scores.word_perplexity.value),
    ]
