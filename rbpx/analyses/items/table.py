"""Items of tasks: scores and exact matches in, tables out."""

from collections.abc import Sequence

from rbpx.analyses.items.analysis import GroupItems, RunItems
from rbpx.analyses.items.emergence import HITS
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, short, span, with_ends
from rbpx.display.tables import console, grid, print_notes, put


def show(results: Sequence[GroupItems]) -> None:
    """Print the scores of each group, then its exact matches."""
    screen = console()
    for items in results:
        is_text = all(each.scores.acc.value is None for each in items.runs)
        table = grid(
            f"{items.group.title}: {'texts' if is_text else 'items'}",
            _columns(is_text),
            2,
            () if is_text else ("chance", "bits/byte", "p", "acc_norm", "95 % ", "acc_bytes", "perplexity"),
        )
        for each in items.runs:
            table.add_row(*_names(each), *(_of_text(each) if is_text else _of_items(each)))
        put(screen, table)
        if is_text:
            continue
        columns = ["size", "slice", "k", "RBP_k", "exact match", "95 %", "independent", "correlation", "correlated"]
        table = grid(f"{items.group.title}: exact match at k", columns, 2, ("correlation", "RBP_k"))
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
    print_notes(
        screen,
        "acc: share of items whose right choice has the highest log-likelihood or, without choices, whose target is "
        "what greedy decoding gives; stderr: its standard error, as lm-evaluation-harness gives it; p: how likely "
        "guessing is to do as well; acc_norm and acc_bytes: over the characters and bytes of a choice; perplexity: "
        "of a whole target. Exact match: share of items all of whose tokens are hits, which have rank <= k. "
        "independent: what it would be if the tokens of an item were hits independently of each other; correlation: "
        "of two hits of one item, 0 where they are independent; correlated: what exact match would be with that. "
        "Laws of emergence: a token is a hit with -ln RBP_k = C S^-alpha, and hits of one item are independent or "
        f"correlate, as measured or as fits best; maximum likelihood; least AIC fits best. Ties {ties}. 95 % "
        f"intervals over items.{_of_ties(results)}",
        (fit.status for items in results for law in items.emergence for fit in law.fits.values()),
    )


def _of_ties(results: Sequence[GroupItems]) -> str:
    """How many items hang on a tie, and how that is decided."""
    scores = [each.scores for items in results for each in items.runs if each.part is None]
    chosen = sum(each.n_tied for each in scores if each.chance is not None)
    greedy = sum(each.n_tied for each in scores if each.chance is None)
    said = f" Right choices that tie with another, where the first counts: {chosen}." if chosen else ""
    return said + (f" {greedy} items are greedy but for a tie, which the lowest id would win." if greedy else "")


def _print_laws(items: GroupItems) -> None:
    if not items.emergence:
        return
    columns = ["k", "hits", "alpha", "95 % interval", "correlation", "95 %", "AIC", "status"]
    table = grid(f"{items.group.title}: the law of emergence on items", columns, 2, ("AIC",))
    table.columns[-1].justify = "left"
    for law in items.emergence:
        for correction, fit in law.fits.items():
            table.add_row(
                f"{law.k:,}",
                HITS[correction],
                number(fit.alpha),
                span(fit.alpha_lo, fit.alpha_hi),
                number(fit.r, 3),
                span(fit.r_lo, fit.r_hi, 3),
                number(fit.aic, 1),
                status_name(fit.status),
            )
    put(console(), table)


def _columns(is_text: bool) -> list[str]:
    if is_text:
        return ["size", "slice", "texts", "bits/byte", "95 %", "byte ppl", "word ppl"]
    return [
        "size",
        "slice",
        "items",
        "chance",
        "acc +- stderr",
        "95 %",
        "p",
        "acc_norm",
        "95 % ",
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
        f"{number(scores.acc.value, 3)} +- {number(scores.acc_stderr, 3)}",
        span(scores.acc.lo, scores.acc.hi, 3),
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
