"""Puts attempts into sentences: both slopes, the tail, what is foretold and how well, what attempts are worth."""

from collections.abc import Iterator

from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, AxisWords, rough, short, significant
from rbpx.errors import number_of
from rbpx.laws.exchange import STEP
from rbpx.questions.attempts.analysis import LEAST_SQUARES, Attempts, Exponent, RunAttempts, is_without_law
from rbpx.questions.attempts.bounds import Bound
from rbpx.questions.attempts.passing import Counted
from rbpx.questions.question import one_by_one
from rbpx.status import Status


@one_by_one
def sentences(result: Attempts) -> Iterator[str]:
    """What the largest model passes and with which slopes, its tail, the forecasts, and what attempts are worth."""
    last, x = result.runs[-1], AXES[result.group.axis]
    yield from _of_run(last)
    if result.hidden:
        best = min(result.hidden, key=lambda each: each.error or 0.0)
        errors = ", ".join(f"{each.way.replace('_', ' ')} {each.error:.0%}" for each in result.hidden)
        yield (
            f"With {best.n_samples:,} samples left, −ln pass@k at a hundredfold is missed by {errors}; "
            f"{number_of(best.n_models, 'model')} on the same items are one cluster."
        )
    if is_without_law(result.group):
        yield (
            "Models of one size were trained on different numbers of tokens, so there is no law in S: axis=D asks for "
            "one along the tokens of each size."
        )
    yield from _worth(result, x)
    if last.bounds:
        yield _of_ranks(last, last.bounds[min(1, len(last.bounds) - 1)])


def _of_run(of: RunAttempts) -> Iterator[str]:
    ends = [of.passes[0], of.passes[-1]]
    shares = " and ".join(f"{significant(each.passes.value, 3)} at k = {each.k:,}" for each in ends)
    how = "tries" if isinstance(of.items, Counted) else "probabilities"
    yield f"{of.label} passes {shares}, by {how} of {number_of(len(of.items.names), 'item')}."
    by = {each.how: each for each in of.exponents}
    straight, beta = by[LEAST_SQUARES], by["beta"]
    if Status.no_heavy_tail in straight.reasons:
        yield "No item is nearly out of reach, so failures fall faster than a power of k: there is no heavy tail."
        return
    if straight.alpha.value is None:
        return
    at = of.passes[-1]
    local = ""
    if at.slopes.neg_ln is not None and at.slopes.failures is not None:
        local = (
            f"; near k = {at.k:,} its slope is {at.slopes.neg_ln:.3f}, and that of 1 − pass@k {at.slopes.failures:.3f}"
        )
    yield f"−ln pass@k falls as k^−{straight.alpha.value:.3f} over k = 1 to {short(straight.k[1])}{local}."
    others = [each for name, each in by.items() if name != LEAST_SQUARES and each.alpha.value is not None]
    if beta.alpha.value is not None and beta.b.value is not None:
        tails = ", ".join(f"{_name(each)} {interval_of(each.alpha)}" for each in others)
        yield f"The exponent of the tail, reached at k far above {short(beta.b.value)}, is a: {tails}."


def _name(of: Exponent) -> str:
    words = {"beta": "by beta", "kumaraswamy": "by Kumaraswamy", "discrete": "without a form"}[of.how]
    return f"{words} (does not fit)" if Status.misfit in of.reasons else words


def _worth(result: Attempts, x: AxisWords) -> Iterator[str]:
    first = result.runs[0]
    if first.exchange is None:
        return
    if first.exchange.hi is None:
        yield f"What {STEP} attempts are worth is open: pass@1 is not known to rise {x.grows}."
        return
    more = x.more.format(rough(first.exchange.factor))
    beside = ""
    if first.of_ranks is not None:
        beside = f"; a rank of {STEP} in place of 1 is worth {rough(first.of_ranks.factor)} times"
    yield f"To pass with one attempt what {first.label} passes with {STEP}, a model must be {more}{beside}."


def _of_ranks(of: RunAttempts, at: Bound) -> str:
    said = f"At k = {at.k:,} {of.label} has exact match {at.exact_match:.3f} and pass@k {at.passes:.3f}"
    if at.upper is None or at.lower is None:
        return f"{said}."
    return f"{said}, which ranks bound to {short(at.lower)} .. {at.upper:.3f}: exact match at k alone is no bound."
