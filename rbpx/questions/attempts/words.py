"""Puts attempts into sentences: both slopes, the tail, what is foretold and how well, what attempts are worth."""

from collections.abc import Iterator, Sequence

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, rough, short, significant
from rbpx.errors import number_of
from rbpx.laws.exchange import STEP
from rbpx.questions.attempts.analysis import LEAST_SQUARES, is_without_law
from rbpx.runs.group import Group
from rbpx.status import Status
from rbpx.store.store import Record


def sentences(group: Group, rows: Sequence[Record]) -> Iterator[str]:
    """What the largest model passes and with which slopes, its tail, the forecasts, and what attempts are worth."""
    passes = [row for row in rows if row["kind"] == "pass"]
    label = passes[-1]["size"]
    of_last = [row for row in rows if row.get("size") == label]
    yield from _of_run(label, [row for row in passes if row["size"] == label], of_last)
    hidden = [row for row in rows if row["kind"] == "hidden"]
    if hidden:
        errors = ", ".join(f"{row['way'].replace('_', ' ')} {row['error']:.0%}" for row in hidden)
        yield (
            f"With {hidden[0]['n_samples']:,} samples left, −ln pass@k at a hundredfold is missed by {errors}; "
            f"{number_of(hidden[0]['n_models'], 'model')} on the same items are one cluster."
        )
    if is_without_law(group):
        yield (
            "Models of one size were trained on different numbers of tokens, so there is no law in S: axis=D asks for "
            "one along the tokens of each size."
        )
    yield from _worth(group, [row for row in rows if row["kind"] == "exchange" and row["size"] == passes[0]["size"]])
    bounds = [row for row in of_last if row["kind"] == "bound"]
    yield from map(_of_ranks, bounds[:2][-1:])


def _of_run(label: str, passes: Sequence[Record], of_run: Sequence[Record]) -> Iterator[str]:
    at = passes[-1]
    shares = " and ".join(f"{significant(row['passes'], 3)} at k = {row['k']:,}" for row in (passes[0], at))
    how = "probabilities" if at["n_samples"] is None else "tries"
    yield f"{label} passes {shares}, by {how} of {number_of(at['n_items'], 'item')}."
    by = {row["how"]: row for row in of_run if row["kind"] == "exponent"}
    straight, beta = by.pop(LEAST_SQUARES), by["beta"]
    if Status.no_heavy_tail in straight["reasons"]:
        yield "No item is nearly out of reach, so failures fall faster than a power of k: there is no heavy tail."
        return
    if straight["alpha"] is None:
        return
    local = ""
    if at["slope_neg_ln"] is not None and at["slope_failures"] is not None:
        local = f"; near k = {at['k']:,} its slope is {at['slope_neg_ln']:.3f}, and that of 1 − pass@k "
        local += f"{at['slope_failures']:.3f}"
    yield f"−ln pass@k falls as k^−{straight['alpha']:.3f} over k = 1 to {short(straight['k_to'])}{local}."
    if beta["alpha"] is not None and beta["b"] is not None:
        known = [row for row in by.values() if row["alpha"] is not None]
        tails = ", ".join(f"{_name(row)} {interval_of(estimate_in(row, 'alpha'))}" for row in known)
        yield f"The exponent of the tail, reached at k far above {short(beta['b'])}, is a: {tails}."


def _name(row: Record) -> str:
    words = {"beta": "by beta", "kumaraswamy": "by Kumaraswamy", "discrete": "without a form"}[row["how"]]
    return f"{words} (does not fit)" if Status.misfit in row["reasons"] else words


def _worth(group: Group, exchanges: Sequence[Record]) -> Iterator[str]:
    """What attempts, and ranks, are worth to the smallest model."""
    by, x = {row["of"]: row for row in exchanges}, AXES[group.axis]
    if "attempts" not in by:
        return
    if by["attempts"]["hi"] is None:
        yield f"What {STEP} attempts are worth is open: pass@1 is not known to rise {x.grows}."
        return
    more, label = x.more.format(rough(by["attempts"]["factor"])), by["attempts"]["size"]
    beside = f"; a rank of {STEP} in place of 1 is worth {rough(by['ranks']['factor'])} times" if "ranks" in by else ""
    yield f"To pass with one attempt what {label} passes with {STEP}, a model must be {more}{beside}."


def _of_ranks(at: Record) -> str:
    said = f"At k = {at['k']:,} {at['size']} has exact match {at['exact_match']:.3f} and pass@k {at['passes']:.3f}"
    if at["upper"] is None or at["lower"] is None:
        return f"{said}."
    return (
        f"{said}, which ranks bound to {short(at['lower'])} .. {at['upper']:.3f}: exact match at k alone is no bound."
    )
