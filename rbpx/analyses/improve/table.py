"""Improvement by token: token ids with their slopes and shares in, those that matter most out, better and worse."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.improve.analysis import Improvement, TokenImprovement
from rbpx.display.tables import UNKNOWN, console, grid, number, put, span

_WIDEST = 13  # characters of a token's text


def show(found: Sequence[Improvement]) -> None:
    """Print the token ids with the largest share of the improvement, then those that got worse."""
    screen = console()
    for improvement in found:
        better = [token for token in improvement.tokens if token.fall_nats > 0]
        worse = [token for token in reversed(improvement.tokens) if token.fall_nats < 0]
        for what, tokens in (("what improves, by its share", better), ("what gets worse, the worst first", worse)):
            if tokens:
                _print_tokens(screen, improvement, what, tokens)
        screen.print(_rest(improvement), soft_wrap=True)
    k, ties = found[0].k, found[0].group.ties.value
    screen.print(
        f"Slope: mean over the occurrences of a token id of d nats / d ln S, its interval over documents. Nats and "
        f"RBP_{k} (ties {ties}): means at the smallest and the largest size. Share: of the whole fall in nats between "
        f"these two; --format json has its intervals, and all token ids.",
        soft_wrap=True,
    )


def _print_tokens(screen: Console, found: Improvement, what: str, tokens: Sequence[TokenImprovement]) -> None:
    columns = ["token", "id", "times", "documents", "slope", "95 % interval", "nats", f"RBP_{found.k}", "share"]
    spare = ("95 % of share", "documents", "id")
    sizes = f"{found.group.runs[0].size}..{found.group.runs[-1].size}"
    table = grid(f"{found.group.title}, {sizes}: {what}", [*columns, "95 % of share"], spare=spare)
    for token in tokens[: found.top]:
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
    """A token's text as Python writes it, so that blanks and line ends are seen, safe in markup; its id without one."""
    if text is None:
        return f"id {token_id}"
    written = repr(text)
    shown = written if len(written) <= _WIDEST else f"{written[: _WIDEST - 1]}…"
    return escape(shown)


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2%}"


def _rest(found: Improvement) -> str:
    often, rarer = f"{len(found.tokens):,} token ids are scored at least {found.least} times", f"{found.n_rarer:,}"
    line = f"{found.group.title}: {often}, {rarer} less often"
    if found.rarer_share is None:
        line += "; the text as a whole is not predicted better, so nothing has a share"
    else:
        line += f"; these have {_share(found.rarer_share)} of the improvement"
    left = f" {found.n_left_out:,} tokens were not scored at every size and are left out." if found.n_left_out else ""
    return f"{line}.{left}\n"
