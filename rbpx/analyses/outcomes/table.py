"""From outcomes to tokens: recovered laws in; passes, what they imply for tokens, and how far off that is, out."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.outcomes.recovery import OutcomeLaws, OutcomesResult
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, rough, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.outcome_counts import Correction
from rbpx.laws.outcomes import OutcomeFit, implied_rbp
from rbpx.laws.power import PowerLawFit

_LONGEST_NAME: Final = 16
_TAKEN = {
    Correction.none: "independent",
    Correction.measured: "r measured",
    Correction.free: "r fitted",
}


def show(results: Sequence[OutcomesResult]) -> None:
    """Print for each k the shares that passed, the laws recovered from them, and the RBP_k that they imply."""
    screen = console()
    for each in results:
        for laws in each.by_k:
            title = f"{each.title}{'' if laws.k is None else f', k = {laws.k}'}"
            _print_passes(screen, title, laws)
            _print_laws(screen, title, laws)
            _print_rbp(screen, title, laws)
    print_notes(
        screen,
        "A sequence of N tokens passes if all are hits, with ranks at most k. Independent: pass ~ Bernoulli(exp(-C N "
        "S^-alpha)), by maximum likelihood. Correlation (r): between two hits of a sequence, whose number is then "
        "beta-binomial; measured on the tokens, for each size and N, or fitted, one value for all. Bias: of alpha "
        "against the law of the tokens; its interval is in --format json. No interval: the likelihood has no maximum "
        "in more than 5 % of the resamples of the documents.",
        (fit.status for each in results for laws in each.by_k for fit in laws.fits.values()),
    )


def _print_passes(screen: Console, title: str, laws: OutcomeLaws) -> None:
    first, last = (escape(_short(laws.sizes[at])) for at in (0, -1))
    names = ["N", "sequences", f"passed: {first}", last]
    table = grid(f"{title}: sequences of N tokens", _of_tokens(laws, names, "r"))
    for at, n in enumerate(laws.lengths):
        shares = [
            UNKNOWN if not trials else rough(float(passed / trials))
            for passed, trials in ((laws.passed_ML[m, at], laws.trials_ML[m, at]) for m in (0, -1))
        ]
        r_M = () if laws.tokens is None or n == 1 else laws.tokens.r_ML[:, at]
        correlation = span(float(min(r_M)), float(max(r_M)), 3) if len(r_M) else UNKNOWN
        few, many = (f"{int(end):,}" for end in (laws.trials_ML[:, at].min(), laws.trials_ML[:, at].max()))
        row = [str(n), many if few == many else f"{few}..{many}", *shares]
        table.add_row(*_of_tokens(laws, row, correlation))
    put(screen, table)


def _print_laws(screen: Console, title: str, laws: OutcomeLaws) -> None:
    columns = _of_tokens(laws, ["hits taken as", "N", "alpha", "95 % interval"], "bias")
    table = grid(f"{title}: -ln RBP = C · S^-alpha from the outcomes", [*columns, "status"])
    if laws.tokens is not None:
        table.add_row("tokens themselves", *_numbers("", laws.tokens.law), "", status_name(laws.tokens.law.status))
    for correction, name in _TAKEN.items():
        fits = [(n, fit) for (n, applied), fit in laws.fits.items() if applied is correction]
        if fits:
            table.add_section()
        for n, fit in fits:
            r = "" if fit.r is None else f" {number(fit.r, 3)}"
            row = _numbers("all" if n is None else str(n), fit)
            table.add_row(*_of_tokens(laws, [name + r, *row], _bias(laws, fit)), status_name(fit.status))
    put(screen, table)


def _short(size: str) -> str:
    """The end of a long name, by which the models of a hub differ."""
    return size if len(size) <= _LONGEST_NAME else f"…{size[-_LONGEST_NAME + 1 :]}"


def _of_tokens(laws: OutcomeLaws, row: list[str], more: str) -> list[str]:
    """A row, with one more cell if the tokens are known."""
    return row if laws.tokens is None else [*row, more]


def _numbers(n: str, fit: OutcomeFit | PowerLawFit) -> list[str]:
    return [n, number(fit.alpha), span(fit.alpha_lo, fit.alpha_hi, 3)]


def _bias(laws: OutcomeLaws, fit: OutcomeFit) -> str:
    bias = laws.bias(fit)
    return UNKNOWN if bias is None else f"{bias.value:+.4f}"


def _print_rbp(screen: Console, title: str, laws: OutcomeLaws) -> None:
    fits = [(key, fit) for key, fit in laws.fits.items() if fit.alpha is not None and _belongs_in_table(key, laws)]
    if not fits:
        return
    names = [f"N = {n}" if n is not None else "all, fitted r" for (n, _), _ in fits]
    table = grid(
        f"{title}: RBP of single tokens, by those laws", ["size", *(["tokens"] if laws.tokens else []), *names]
    )
    for m, S in enumerate(laws.S):
        counted = [] if laws.tokens is None else [number(float(laws.tokens.rbp_M[m]), 3)]
        table.add_row(escape(_short(laws.sizes[m])), *counted, *(number(implied_rbp(fit, S)[0], 3) for _, fit in fits))
    put(screen, table)


def _belongs_in_table(key: tuple[int | None, Correction], laws: OutcomeLaws) -> bool:
    """Each length under independence, as for a benchmark, and all lengths together with a fitted correlation."""
    return key[1] is (Correction.free if key[0] is None else Correction.none)
