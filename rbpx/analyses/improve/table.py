"""Improvement by token: token ids with their slopes and shares in, those that improve or worsen most out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.improve.analysis import Improvement, TokenImprovement, Trend
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, put

_WIDEST = 13  # characters of a token's text


def show(results: Sequence[Improvement]) -> None:
    """Print the token ids with the largest share of the improvement, then those that got worse."""
    screen = console()
    for improvement in results:
        better, worse = improvement.of_trend(Trend.improves), improvement.of_trend(Trend.worsens)[::-1]
        for what, tokens in (("what improves, by share", better), ("what gets worse, the worst first", worse)):
            if tokens:
                _print_tokens(screen, improvement, what, tokens)
        screen.print(_rest(improvement), soft_wrap=True)
    k, ties = results[0].k, results[0].group.ties.value
    screen.print(
        "Slope: mean of d nats / d ln S over the occurrences of a token id, with an interval over documents; an id is "
        "listed where that does not contain 0 (at 95 %, each id by itself, so of those without any change chance lists "
        f"1 in 20) and the ends agree with it. Nats and RBP_{k} (ties {ties}): means at the smallest and the largest "
        "size. Share: of the total fall in nats between these two; --format json has its intervals and all token ids.",
        soft_wrap=True,
    )


def _print_tokens(screen: Console, result: Improvement, what: str, tokens: Sequence[TokenImprovement]) -> None:
    columns = ["token", "id", "times", "documents", "slope", "95 % interval", "nats", f"RBP_{result.k}", "share"]
    spare = ("95 % of share", "documents", "id")
    sizes = f"{result.group.runs[0].size}..{result.group.runs[-1].size}"
    table = grid(f"{result.group.title}, {sizes}: {what}", [*columns, "95 % of share"], spare=spare)
    for token in tokens[: result.top]:
        table.add_row(
            legible(token.text, token.token_id),
            str(token.token_id),
            f"{token.n_tokens:,}",
            f"{token.n_documents:,}",
            number(token.slope, 3),
            span(token.slope_lo, token.slope_hi, 3),
            f"{number(token.smallest_nats, 2)}..{number(token.largest_nats, 2)}",
            f"{number(token.smallest_rbp, 2)}..{number(token.largest_rbp, 2)}",
            _share(token.share),
            f"{_share(token.share_lo)}..{_share(token.share_hi)}" if token.share_lo is not None else UNKNOWN,
        )
    put(screen, table)


def legible(text: str | None, token_id: int) -> str:
    """A token's text as Python writes it, so that blanks and line ends are visible, or its id; safe in markup."""
    if text is None:
        return f"id {token_id}"
    written = repr(text)
    return escape(written if len(written) <= _WIDEST else f"{written[: _WIDEST - 1]}…")


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2%}"


def _rest(result: Improvement) -> str:
    often, rarer = f"{len(result.tokens):,} token ids are scored at least {result.least} times", f"{result.n_rarer:,}"
    line = f"{result.group.title}: {often}, {rarer} less often"
    if result.rarer_share is None:
        line += "; the text as a whole is not predicted better, so there are no shares"
    else:
        line += f"; those make up {_share(result.rarer_share)} of the improvement"
    n_of = {trend: len(result.of_trend(trend)) for trend in Trend}
    line += f". {n_of[Trend.improves]:,} improve, {n_of[Trend.worsens]:,} get worse"
    others = {
        Trend.unclear: "show no measurable change",
        Trend.turns: "have a slope and ends that disagree",
        Trend.unknown: "are in one document, so nothing is known of them",
    }
    line += "".join(f", {n_of[trend]:,} {words}" for trend, words in others.items() if n_of[trend])
    left = f" {result.n_left_out:,} tokens were not scored at every size and are left out." if result.n_left_out else ""
    return f"{line}.{left}\n"
