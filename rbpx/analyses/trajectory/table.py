"""Along training: the law of each size, what became of its tokens, and which they are, in tables."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.analyses.trajectory.analysis import Trajectories, Trajectory
from rbpx.analyses.trajectory.tokens import TokenHistories
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, short, significant, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.laws.trajectory.histories import History

_SHOWN = (History.learned, History.forgotten, History.unstable)
_WIDEST = 13  # characters of a token's text


def show(results: Sequence[Trajectories]) -> None:
    """Print the laws, the histories, and the ids that have each most often."""
    screen = console()
    for trajectories in results:
        _print_laws(trajectories)
        if trajectories.histories:
            _print_histories(trajectories)
            for tokens in trajectories.histories:
                _print_ids(trajectories, tokens)
    print_notes(
        screen,
        "y = E + B D^-beta from the first D that follows it (F tests at 1 %, or warm_up=); its intervals take "
        "checkpoints to scatter independently. Learned: a miss that became a hit and stayed one; forgotten: the other "
        "way; unstable: changed more than once. Half settled: from there on half of the tokens never change again.",
        (each.status for of in results for each in of.laws),
    )
    for group in (of.group for of in results):
        left_out = {"finished models": group.n_other, "checkpoints with the weights of another": group.n_same}
        named = [f"{n} {what}" for what, n in left_out.items() if n]
        if named:
            screen.print(f"{group.title}: left out: {', '.join(named)}.", markup=False, soft_wrap=True)


def _print_laws(trajectories: Trajectories) -> None:
    columns = ["size", "S", "points", "D", "from D", "beta", "95 % interval", "E", "B", "R2", "status"]
    spare = ("D", "S", "R2", "B")
    table = grid(f"{trajectories.group.title}: along training", columns, spare=spare)
    table.columns[-1].justify = "left"
    for law, k in dict.fromkeys((each.law, each.k) for each in trajectories.laws):
        rows = [_row(each) for each in trajectories.laws if (each.law, each.k) == (law, k)]
        table.add_part(law_name(law, k), rows)
    put(console(), table)


def _row(each: Trajectory) -> list[str]:
    after, reach = each.after, f"{short(each.D[0])}..{short(each.D[-1])}"
    row = [f" {escape(each.name)}", short(each.S), str(len(each.D)), reach]
    if after is None:
        return [*row, *[UNKNOWN] * 6, status_name(each.status)]
    fit = after.law
    return [
        *row,
        short(after.D),
        number(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi),
        number(fit.params.get("E"), 3),
        significant(fit.C, 4),
        number(fit.r2, 3),
        status_name(each.status),
    ]


def _print_histories(trajectories: Trajectories) -> None:
    columns = ["along", "k", "runs", "tokens", *(history.name for history in History), "half settled"]
    table = grid(f"{trajectories.group.title}: what became of each token", columns, spare=("tokens", "runs"))
    for tokens in trajectories.histories:
        along = "sizes" if tokens.along == "size" else f"training of {escape(tokens.of)}"
        axis = "S" if tokens.along == "size" else "D"
        table.add_row(
            along,
            str(tokens.k),
            str(len(tokens.at)),
            f"{tokens.n_tokens:,}",
            *(f"{tokens.shares[history]:.1%}" for history in History),
            f"{axis} = {short(tokens.half_settled)}",
        )
    put(console(), table)


def _print_ids(trajectories: Trajectories, tokens: TokenHistories) -> None:
    along = "sizes" if tokens.along == "size" else f"the training of {tokens.of}"
    title = f"{trajectories.group.title}: along {along}, k = {tokens.k}, ids by how often (of how many)"
    table = grid(title, [history.name for history in _SHOWN], left=len(_SHOWN))
    columns = [[token for token in tokens.ids if token.history is history] for history in _SHOWN]
    for at in range(min(max(map(len, columns), default=0), trajectories.top)):
        cells = [column[at] if at < len(column) else None for column in columns]
        table.add_row(*("" if c is None else f"{_legible(c.text, c.token_id)} {c.n:,} ({c.n_scored:,})" for c in cells))
    put(console(), table)


def _legible(text: str | None, token_id: int) -> str:
    """A token's text as Python writes it, so that blanks and line ends are visible, or its id; safe in markup."""
    if text is None:
        return f"id {token_id}"
    written = repr(text)
    return escape(written if len(written) <= _WIDEST else f"{written[: _WIDEST - 1]}…")
