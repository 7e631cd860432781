"""The distribution of the ranks: fitted groups in; rival forms, their parameters and the laws they imply out."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.ranks.analysis import PAPER, Closure, Ranks, RunRanks
from rbpx.analyses.ranks.compare import Rival
from rbpx.display.names import remedies, status_name
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, put
from rbpx.laws.distribution import DISTRIBUTIONS
from rbpx.laws.family import FAMILIES
from rbpx.status import Status

SHORT = {
    "lognormal_paper": "lognormal as published",
    "lognormal_full": "lognorm.",
    "power_law": "power",
    "power_law_cutoff": "cut off",
    "zipf_mandelbrot": "Zipf-M.",
    "weibull": "Weibull",
    "negative_binomial": "neg.bin.",
    "lognormal_inflated": "inflated",
}
_QUANTITIES = {"cross_entropy": "CE", "error_entropy": "H(P)"}


def show(results: Sequence[Ranks]) -> None:
    """Print for each group the rival forms by size, mu and sigma, and the derived laws beside the measured ones."""
    screen = console()
    for ranks in results:
        title = ranks.group.title
        _print_rivals(screen, ranks, f"{title}: nats per token behind the best", _behind)
        _print_rivals(screen, ranks, f"{title}: largest difference of the two CDFs", _distance)
        _print_criteria(screen, ranks)
        _print_lognormal(screen, ranks)
        for name in dict.fromkeys(closure.distribution for closure in ranks.closures):
            _print_closures(screen, ranks, name)
    _print_footnote(screen, results)


def _print_rivals(screen: Console, ranks: Ranks, title: str, cell: Callable[[Rival], str]) -> None:
    spare = [SHORT["negative_binomial"]]  # where the names of sizes are long, one has to go
    table = grid(title, ["size", *(SHORT[name] for name in DISTRIBUTIONS)], spare=spare)
    for of in ranks.runs:
        table.add_row(escape(of.run.size), *(cell(of.rival(name)) for name in DISTRIBUTIONS))
    put(screen, table)


def _behind(rival: Rival) -> str:
    """Nats per token lost to the best form; in brackets where that is not significantly different from 0."""
    if rival.behind is None:
        return UNKNOWN
    lost, ends = rival.behind
    if lost == 0:
        return "best"
    return f"({number(lost)})" if ends is not None and ends[0] <= 0 else number(lost)


def _distance(rival: Rival) -> str:
    return number(rival.fit.distance)


def _print_criteria(screen: Console, ranks: Ranks) -> None:
    """Print sums over the sizes, as differences from the least; a form without numbers at a size is left out."""
    rivals_of = {name: [of.rival(name) for of in ranks.runs] for name in DISTRIBUTIONS}
    sums = {
        name: (sum(r.fit.aic or 0.0 for r in rivals), sum(r.fit.bic or 0.0 for r in rivals))
        for name, rivals in rivals_of.items()
        if all(rival.fit.aic is not None for rival in rivals)
    }
    if not sums:
        return
    least = [min(each) for each in zip(*sums.values(), strict=True)]
    columns = ["distribution", "parameters", "AIC above least", "BIC above least", "best at"]
    table = grid(f"{ranks.group.title}: all sizes together", columns)
    for name in sorted(sums, key=lambda name: sums[name]):
        above = [f"{value - low:,.0f}" for value, low in zip(sums[name], least, strict=True)]
        best_at = sum(of.best == name for of in ranks.runs)
        table.add_row(SHORT[name], str(FAMILIES[name].n_parameters), *above, f"{best_at}/{len(ranks.runs)}")
    put(screen, table)


def _print_lognormal(screen: Console, ranks: Ranks) -> None:
    columns = ["size", "S", "tokens from 2 up", "mu", "95 % interval", "sigma", "95 % interval", "gamma", "distance"]
    title = f"{ranks.group.title}: lognormal as published (ranks from 2 up)"
    table = grid(title, [*columns, "status"], spare=("distance", "S", "tokens from 2 up"))
    for of in ranks.runs:
        table.add_row(escape(of.run.size), *_lognormal(of))
    put(screen, table)
    for name, trend in ranks.trends.items():
        if trend.alpha is not None and trend.alpha_lo is not None and trend.alpha_hi is not None:
            change = f"{number(-trend.alpha, 3)} ({span(-trend.alpha_hi, -trend.alpha_lo, 3)}) for each ln S"
            if trend.alpha_lo <= 0 <= trend.alpha_hi:
                screen.print(f"{name} has no measurable trend in S: {change}.")
            else:
                screen.print(f"{name} changes by {change}, R2 {number(trend.r2, 3)}.")


def _lognormal(of: RunRanks) -> list[str]:
    rival = of.rival(PAPER)
    params, ends = rival.fit.params, rival.interval
    unconstrained = of.rival("lognormal_full").fit.params.get("gamma_unconstrained")
    n_tokens = params.get("n_tokens")
    cells = [f"{of.run.non_embedding_params:,}", UNKNOWN if n_tokens is None else f"{n_tokens:,}"]
    for name in ("mu", "sigma"):
        lo, hi = ends.get(name, (None, None))
        cells += [number(params[name], 2), span(lo, hi, 2)]
    return [*cells, number(unconstrained), number(rival.fit.distance), status_name(rival.fit.status)]


def _print_closures(screen: Console, ranks: Ranks, name: str) -> None:
    columns = ["law", "measured", "derived", "difference", "95 % interval", "level", "95 % of it", "approx."]
    what = f"{SHORT[name]}{'' if name == PAPER else ', the smallest AIC'}"
    title = f"{ranks.group.title}: alpha measured and derived from the {what}; difference: derived - measured"
    table = grid(title, columns, spare=("approx.",)) if name == PAPER else grid(title, columns[:-1])
    for closure in ranks.closures:
        if closure.distribution == name:
            table.add_row(*_closure(closure)[: len(columns) if name == PAPER else -1])
    put(screen, table)


def _closure(closure: Closure) -> list[str]:
    ratio, (level, lo, hi) = closure.ratio, closure.level
    by_paper = None if closure.approximated is None else closure.approximated.alpha
    return [
        f"-ln RBP_{closure.k}" if closure.k is not None else _QUANTITIES[closure.quantity],
        number(closure.measured.alpha, 3),
        number(closure.derived.alpha, 3),
        number(ratio.alpha, 3),
        span(ratio.alpha_lo, ratio.alpha_hi, 3) if ratio.alpha_lo is not None else status_name(ratio.status),
        number(level, 2),
        span(lo, hi, 2),
        number(by_paper, 3),
    ]


def _print_footnote(screen: Console, results: Sequence[Ranks]) -> None:
    ties = ", ".join(dict.fromkeys(ranks.group.ties.value for ranks in results))
    screen.print(
        f"Ties {ties}. All distributions but the published one are maximum likelihood over the ranks 1..V. Behind: how "
        "much less log-likelihood a token has, in brackets where resampled documents do not separate it from the best "
        "(intervals: --format json). Gamma: free curvature of the lognormal over all ranks; at 0 or below no lognormal "
        "fits. Difference: alpha derived - alpha measured, below 0 where the derived law is flatter, with an interval "
        "over documents and models; level: derived / measured at the geometric mean of the sizes; exact closure would "
        "be 0 and 1. Approx.: alpha by the paper's approximation of the sums. AIC and BIC treat tokens as independent, "
        "the intervals do not.",
        soft_wrap=True,
    )
    for name in DISTRIBUTIONS:
        screen.print(f"{SHORT[name]}: {escape(FAMILIES[name].equation)}", soft_wrap=True)
    for name in (PAPER, *DISTRIBUTIONS):
        limits = [of.rival(name).fit.status for ranks in results for of in ranks.runs]
        for status in dict.fromkeys(s for s in limits if s is not Status.ok):
            screen.print(f"{SHORT[name]}: {status_name(status)} at {limits.count(status)} of {len(limits)} sizes.")
    for line in remedies(rival.fit.status for ranks in results for of in ranks.runs for rival in of.rivals):
        screen.print(line, soft_wrap=True)
