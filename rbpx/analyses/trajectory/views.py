"""Shows what happens along training: the law of each size, what became of its tokens, and which tokens those are."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from rbpx.analyses.question import Question, each, one_by_one
from rbpx.analyses.trajectory.analysis import Trajectories, Trajectory, analyse, keep
from rbpx.analyses.trajectory.figures import figures
from rbpx.analyses.trajectory.tokens import TokenCount, TokenHistories
from rbpx.display.view import Cell, Column, Table, View, decimal, ends, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import legible, short, significant
from rbpx.errors import number_of
from rbpx.groups.select.schedules import said_of_places
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Place
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.trajectory import History

_FEW: Final = 3  # numbers that are listed
_OFTEN: Final = {  # the histories of which tokens are named
    History.learned: "misses that became hits and stayed so",
    History.forgotten: "hits that became misses and stayed so",
    History.unstable: "changed more than once",
}
_Named = tuple[TokenHistories, dict[History, TokenCount | None]]  # of each history, the token id of one rank


def _of_law(of: Callable[[PowerLawFit], Estimate]) -> Callable[[Trajectory], Estimate | None]:
    return lambda law: None if law.fit is None else of(law.fit)


def _half_settled(tokens: TokenHistories) -> Cell:
    return Cell((f"{tokens.x} = {short(tokens.half_settled)}",), (tokens.half_settled,))


def _share(history: History) -> Column[TokenHistories]:
    return share(history.name, history.name, lambda tokens: tokens.shares[history], means=_OFTEN.get(history, ""))


def _id(history: History, spare: int = 0) -> Column[_Named]:
    """A token, how many of its occurrences have this history, and how many it has in all."""

    def said(row: _Named) -> str | None:
        token = row[1][history]
        return None if token is None else f"{legible(token.text, token.token_id)} {token.n:,} ({token.n_scored:,})"

    return text(history.name, history.name, said, spare=spare)


def _at(place: Place | None) -> Callable[[Trajectory], int]:
    """How many points of a law have this place in the schedule of the rate."""
    return lambda law: sum(law.runs[at].place is place for at in law.taken)


LAWS: Final = View[Trajectory](
    "laws",
    text("law", "law", lambda law: law.trained.title),
    text("size", "size", lambda law: law.name),
    magnitude("S", "S", lambda law: law.S, spare=4),
    whole("points", "n_points", lambda law: len(law.taken), spare=1),
    ends("D_least D_greatest", lambda law: (law.D[0], law.D[-1]), short, "D", spare=2),
    magnitude("from D", "D_first", lambda law: None if law.after is None else law.after.D),
    with_ends("β", "beta", _of_law(lambda fit: fit.exponent)),
    with_ends("E", "E", _of_law(lambda fit: fit.offset), ends_spare=3),
    with_ends("B", "B", _of_law(lambda fit: fit.constant), lambda value: significant(value, 4), spare=6),
    decimal("R²", "r2", lambda law: None if law.fit is None else law.fit.r2, 3, spare=5),
    state(lambda law: law.status),
)  # fmt: skip
SCHEDULES: Final = View[Trajectory](
    "schedules",
    text("size", "size", lambda law: law.name),
    whole("states", "n_states", lambda law: len(law.D)),
    whole("points", "n_points", lambda law: len(law.taken)),
    whole("ends of decays", "n_ends", _at(Place.end)),
    whole("constant rate", "n_constant", _at(Place.constant), spare=2),
    whole("unknown", "n_unknown", _at(None), spare=3),
    whole("in a decay", "n_middle", lambda law: law.n_left_out.get(Place.middle, 0), "left out; no points of a law"),
    text("D of points", "D_points", lambda law: _few([law.D[at] for at in law.taken]), spare=1),
)
HISTORIES: Final = View[TokenHistories](
    "histories",
    text("along", "along", lambda tokens: tokens.along),
    text("of", "size", lambda tokens: tokens.of),
    whole("k", "k", lambda tokens: tokens.k),
    whole("runs", "n_runs", lambda tokens: len(tokens.at), spare=2),
    whole("tokens", "n_tokens", lambda tokens: tokens.n_tokens, spare=1),
    *(_share(history) for history in History),
    Column("half settled", ("half_settled_at",), _half_settled, "from there on half of the tokens never change"),
)
IDS: Final = View[_Named](
    "ids",
    text("of", "size", lambda row: row[0].of),
    whole("k", "k", lambda row: row[0].k),
    _id(History.learned),
    _id(History.forgotten),
    _id(History.unstable, spare=1),
)


def _few(places: Sequence[float]) -> str:
    """At most three numbers, or the first and the last with how many."""
    if len(places) <= _FEW:
        return ", ".join(map(short, places))
    return f"{short(places[0])} to {short(places[-1])}"


def _once(of: Trajectories) -> list[Trajectory]:
    """One quantity of each training."""
    return list({law.name: law for law in reversed(of.laws)}.values())[::-1]


@one_by_one
def tables(of: Trajectories) -> list[Table]:
    """The laws of a group, the histories of its tokens, and the ids that have each history most often."""
    note = (
        "y = E + B·D^−β from the first D that follows it (F tests at 1 %, or warm_up=); intervals assume that "
        "checkpoints scatter independently."
    )
    about, named = of.group.title, [row for tokens in of.histories for row in _named(tokens, of.top)]
    scheduled = [law for law in _once(of) if law.is_scheduled]
    found = (
        LAWS.table("Laws in training tokens", of.laws, about, note=note),
        SCHEDULES.table("Which states are points, by the schedule of the rate", scheduled, about),
        HISTORIES.table("What became of each token", of.histories, about),
        IDS.table("Token ids by how often (of how many)", named, about),
    )
    return [table for table in found if table.rows]


def _named(tokens: TokenHistories, top: int) -> list[_Named]:
    ids = [[token for token in tokens.ids if token.history is history][:top] for history in _OFTEN]
    return [(tokens, dict(zip(_OFTEN, row, strict=True))) for row in zip_longest(*ids)]


@one_by_one
def sentences(of: Trajectories) -> Iterator[str]:
    """How many trainings have several points, what is left out, and how many tokens changed along each."""
    left_out = {"finished models": of.group.n_other, "checkpoints with the weights of another": of.group.n_same}
    named = ", ".join(f"{n} {what}" for what, n in left_out.items() if n)
    n_trainings = number_of(len({law.name for law in of.laws}), "training")
    yield f"{n_trainings} with several points{f'; left out: {named}' if named else ''}."
    scheduled = [law for law in _once(of) if law.is_scheduled]
    if scheduled:
        counts = Counter[Place]()
        for law in scheduled:
            counts.update(law.n_left_out)
        yield from said_of_places([law.runs[at] for law in scheduled for at in law.taken], counts)
    for tokens in of.histories:
        along = "sizes" if tokens.along == "size" else f"the training of {tokens.of}"
        changed = (History.learned, History.forgotten, History.unstable)
        learned, forgotten, unstable = (f"{tokens.shares[history]:.1%}" for history in changed)
        yield (
            f"Along {along}, {learned} of {tokens.n_tokens:,} tokens were learned at k = {tokens.k}, {forgotten} were "
            f"forgotten and {unstable} changed more than once; from {tokens.x} = {short(tokens.half_settled)} on half "
            "never change."
        )


QUESTION = Question(each(analyse), keep, tables, sentences, figures)
