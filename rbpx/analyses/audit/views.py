"""Tables of the audit of precision: ranks that moved, and how far each run and each law shifts."""

from collections.abc import Iterator, Sequence
from typing import Final

import duckdb

from rbpx.analyses.audit.analysis import ROUNDING, Audit, RunAudit, records
from rbpx.analyses.question import Measured, Question, one_by_one
from rbpx.config.request import Request
from rbpx.display.view import Table, View, decimal, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import law_title, short, signed
from rbpx.errors import number_of
from rbpx.groups.group import Group
from rbpx.groups.shifts import LawShift, Shift
from rbpx.store.store import Record, Store

_IS_SAME: Final = {None: None, True: "yes", False: "no"}
_SAME: Final = (
    "whether a second measurement in float32, or of an engine that is asked again, agrees: at most 1 token in 1,000 "
    f"changed, log-probabilities within {ROUNDING.nats:g} nats; a run of another engine may differ from rbpx's float32 "
    "by tolerance= times as much or, in 16 bits, by tolerance= times as much as rbpx's own run in that precision"
)
MOVES: Final = View[RunAudit](
    "moves",
    text("size", "size", lambda row: row.run.size),
    whole("tokens", "n_tokens", lambda row: row.moves.n_tokens),
    share(
        "changed", "changed", lambda row: row.moves.share_changed, 3,
        "tokens whose number of greater or of equal logits differs",
    ),
    share("moved", "moved", lambda row: row.moves.n_moved / row.moves.n_tokens, 3, "tokens whose rank differs"),
    magnitude("by", "median_move", lambda row: row.moves.median_move, "median change of a rank, then the largest"),
    magnitude("largest", "largest_move", lambda row: row.moves.largest_move),
    magnitude(
        "nats", "largest_logprob_move", lambda row: row.moves.largest_logprob_move,
        "the largest difference of a log-probability",
    ),
    text("same", "is_same", lambda row: _IS_SAME[row.is_same], _SAME),
)  # fmt: skip
LAWS: Final = View[LawShift](
    "laws",
    text("law", "law", lambda law: law_title(law.law, law.k)),
    decimal("stored", "stored", lambda law: law.before.alpha),
    decimal("again", "again", lambda law: law.after.alpha),
    with_ends("difference", "difference", lambda law: law.difference.exponent, lambda value: signed(value, 5)),
    state(lambda law: law.difference.status),
)
SHIFTS: Final = View[tuple[RunAudit, str, Shift]](
    "shifts",
    text("size", "size", lambda row: row[0].run.size),
    text("of", "of", lambda row: row[1]),
    decimal("stored", "stored", lambda row: row[2].before),
    decimal("again", "again", lambda row: row[2].after),
    with_ends("difference", "difference", lambda row: row[2].difference, lambda value: signed(value, 5)),
)


def _shifts(audit: Audit) -> Iterator[tuple[RunAudit, str, Shift]]:
    """The quantities of each run that differ in some document, cross-entropy first."""
    for run in audit.runs:
        for (_, k), shift in sorted(run.shifts.items(), key=lambda of: of[0][1] is not None):
            if shift.difference.value:
                yield run, "CE" if k is None else f"RBP_{k}", shift


def _is_unmoved(audit: Audit) -> bool:
    """Whether no rank moved, and no log-probability beyond rounding."""
    return all(each.moves.n_moved == 0 and each.moves.is_same for each in audit.runs)


def _documents(audit: Audit) -> str:
    return f"{audit.n_documents:,} of {number_of(audit.n_stored, 'document')}"


def _again(audit: Audit) -> str:
    return "asked again in another order" if audit.by_engine else "measured again in float32"


@one_by_one
def tables(audit: Audit) -> Iterator[Table]:
    """How many ranks moved, and how that shifts each run and the laws; none where no rank moved."""
    if not _is_unmoved(audit):
        title, about = f"Ranks {_again(audit)}, {_documents(audit)}", audit.group.title
        yield MOVES.table(title, audit.runs, about, note=f"Ranks count ties as {audit.group.ties.value}.")
        note = "Both on the same documents; leaves out a number that differs in none of them."
        yield SHIFTS.table(f"RBP_k and nats {_again(audit)}", _shifts(audit), about, note=note)
        note = "Intervals are over documents and models; no variation: no rank crossed k, so nothing shifts."
        yield LAWS.table(f"α of the laws {_again(audit)}", audit.laws, about, note=note if audit.laws else "")


@one_by_one
def sentences(audit: Audit) -> Iterator[str]:
    """One line for a group in which nothing moved, and one on the noise of an engine."""
    n_tokens = sum(each.moves.n_tokens for each in audit.runs)
    largest = short(max(each.moves.largest_logprob_move for each in audit.runs))
    if _is_unmoved(audit):
        yield (
            f"{number_of(len(audit.runs), 'size')}, {_documents(audit)}, {number_of(n_tokens, 'token')} "
            f"{_again(audit)}: no rank moved, and no log-probability moved by more than {largest} nats."
        )
    elif audit.by_engine:
        n_moved = sum(each.moves.n_moved for each in audit.runs)
        furthest = max(each.moves.largest_move or 0 for each in audit.runs)
        by = f" by up to {furthest:,g}" if n_moved else ""
        yield (
            f"What moved is the noise of the engine itself, asked again in another order: {n_moved:,} of "
            f"{number_of(n_tokens, 'rank')} moved{by}, and log-probabilities by up to {largest} nats. A difference "
            "between its runs that is no larger may be the same noise."
        )


def _remeasure(request: Request) -> tuple[Sequence[Audit], Measured]:
    from rbpx.analyses.audit.remeasure import remeasure  # with torch, which a table does not need

    return remeasure(request)


def _anew(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Audit]:
    return _remeasure(request)[0]


def _keep(store: Store, audit: Audit) -> list[Record]:
    return records(audit)


QUESTION = Question(_anew, _keep, tables, sentences, remeasure=_remeasure, rows=records, says_all=True)
