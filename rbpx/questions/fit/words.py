"""Puts the laws of size into sentences: what they say, how they were tested, and what would narrow their intervals."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rbpx.display.given import said_of_given
from rbpx.display.section import interval_of, of_ten
from rbpx.display.vocabulary import AXES, AxisWords, law_title, short
from rbpx.errors import number_of
from rbpx.laws.names import Axis, Method
from rbpx.laws.prediction.verdict import SIGNIFICANT
from rbpx.questions.fit.analysis import Laws
from rbpx.runs.fits import Law
from rbpx.runs.group import Group
from rbpx.runs.points.one_run import said_of_one_run
from rbpx.status import Status

__all__ = ["about", "by_methods", "largest", "sentences"]

_METHODS: Final = {
    Method.ols: "least squares",
    Method.weighted: "weighted least squares",
    Method.offset: "least squares with an offset E",
    Method.robust: "Huber's loss",
}


def by_methods(methods: Iterable[Method]) -> str:
    """How laws are fitted."""
    return ", ".join(_METHODS[method] for method in methods)


def about(group: Group) -> str:
    """What was measured, in one line: models, tokens, documents, and how these were read."""
    runs, first = group.runs, group.first
    sizes = list(dict.fromkeys(run.size for run in runs))
    count = number_of(len(runs), AXES[group.axis].point)
    if group.axis is Axis.S and len(sizes) < len(runs):
        count = f"{number_of(len(runs), 'run')} of {number_of(len(sizes), 'size')}"
    named = f"{count}, {' to '.join(dict.fromkeys((sizes[0], sizes[-1])))}"
    if not group.is_measured:
        return f"{named}; imported from {first.source}, ties {group.ties.value}"
    tokens = sorted({run.n_tokens or 0 for run in runs})
    fewest = f"{tokens[0]:,} to " if len(tokens) > 1 else ""
    each = "" if len(runs) == 1 else " a model"
    skipped = f", {first.n_skipped:,} too short to score" if first.n_skipped else ""
    return (
        f"{named}; {fewest}{number_of(tokens[-1], 'scored token')}{each}, "
        f"{number_of(first.n_documents or 0, 'document')}{skipped}; {first.protocol} protocol, {first.dtype}, "
        f"ties {group.ties.value}, text {str(first.text_hash)[:8]}"
    )


def largest(group: Group) -> str:
    """The run at the end of the axis, in words."""
    last = group.runs[-1]
    return f"the largest {AXES[group.axis].one}, {last.size if group.axis is Axis.S else short(last.x)}"


def sentences(laws: Laws) -> Iterator[str]:
    """The laws of a group in words, RBP first; what its few models score where there is no law."""
    yield from _unequal(laws)
    if laws.group.n_sizes >= 3:
        yield from _of_laws(laws)
        yield from said_of_one_run(law for law in laws.laws if Status.one_run in (law.fit.reasons or ()))
        return
    runs, point = laws.group.runs, AXES[laws.group.axis].point
    yield from (_values(laws, at) for at in range(len(runs)))
    are, names = "is" if len(runs) == 1 else "are", ", ".join(run.size for run in runs)
    yield f"There {are} {number_of(laws.group.n_sizes, point)} ({names}); a law needs at least 3."


def _unequal(laws: Laws) -> Iterator[str]:
    """Which runs count more than others."""
    found = [law.fit.unequal for law in laws.laws if law.fit.unequal]
    over = max((each.over for each in found), default=1.0)
    if any((each.weight_N != 1).any() for each in found):
        yield "Runs count by their column weight."
    if over > 1:
        yield f"Laws of well-tuned runs: squares above a law count 1/{over:g}, and its level is that of the others."


def _values(laws: Laws, at: int) -> str:
    """RBP and cross-entropy of one run."""
    run, values = laws.group.runs[at], []
    if laws.evidence:
        values = [f"RBP_{k} = {laws.evidence[at].measured['rbp'][n]:.4f}" for n, k in enumerate(laws.k_grid[:3])]
    if run.cross_entropy_nats is not None:
        values.append(f"cross-entropy {run.cross_entropy_nats:.4f} nats")
    return f"{run.size}: {', '.join(values)}."


def _verdict(laws: Laws) -> str:
    """What the laws say of ten times the size, and how many of them hold."""
    stands = sum(law.fit.status is Status.ok for law in laws.laws)
    lower = [
        f"{law_title(law.law, law.k)} is {of_ten(law.fit.alpha.value or 0.0)}"
        for law in laws.headline
        if law is not None and law.fit.status not in (Status.no_trend, Status.not_monotone, Status.bends)
    ]
    at_tenfold = AXES[laws.group.axis].at_tenfold
    then = f"{at_tenfold[0].upper()}{at_tenfold[1:]} {' and '.join(lower)}; " if lower else ""
    return f"{then}{stands} of these {len(laws.laws)} laws pass{'es' if stands == 1 else ''} every check."


def _of_laws(laws: Laws) -> Iterator[str]:
    if laws.n_unshown:
        yield _verdict(laws)
        return
    first = [law for law in laws.headline if law is not None]
    yield from (_sentence(law, AXES[laws.group.axis]) for law in first)
    errors = [
        f"{law_title(law.law, law.k)} within {abs(law.fit.backtest_error):.1%}"
        for law in first
        if law.fit.backtest_error is not None
    ]
    if errors:
        yield f"Fitted without {largest(laws.group)}, the laws predict its {' and '.join(errors)}."
    for law in laws.laws:
        yield from said_of_given(law_title(law.law, law.k), law.fit.pinned)
    yield from _limits(laws.laws)
    yield from _replicates(laws.laws)
    stands = sum(law.fit.status is Status.ok for law in laws.laws)
    if stands < len(laws.laws) > 1:
        yield f"{stands} of these {len(laws.laws)} laws {'passes' if stands == 1 else 'pass'} every check."


def _sentence(law: Law, words: AxisWords) -> str:
    """One law in words, which are those of its status."""
    fit, name = law.fit, law_title(law.law, law.k)
    subject, alpha = name[0].upper() + name[1:], fit.alpha.value or 0.0
    exponent = f"α = {interval_of(fit.alpha)}"
    turn = "falls" if alpha > 0 else "rises"
    if fit.status is Status.no_trend:
        return f"{subject}: no law here; {exponent} cannot be told from 0."
    if fit.status is Status.not_monotone:
        return f"{subject}: no law here; the values do not move in one direction ({exponent})."
    if fit.status is Status.bends:
        return f"{subject} {turn} {words.grows}, but not as a power law: the points curve about it ({exponent})."
    r2 = "" if fit.r2.value is None else f", R² = {fit.r2.value:.3f}"
    said = f"{subject} {turn} as {words.x}^−α with {exponent}{r2}: {words.at_tenfold} it is {of_ten(alpha)}"
    return said + (f"; its status: {fit.status.label}." if fit.status not in (None, Status.ok) else ".")


def _limits(laws: Sequence[Law]) -> Iterator[str]:
    """What limits the intervals."""
    limits = [law.fit.limited_by for law in laws]
    models, texts = limits.count("models"), [law for law in laws if law.fit.limited_by == "text"]
    names = f" ({', '.join(dict.fromkeys(law_title(law.law, law.k) for law in texts))})" if texts and models else ""
    if any(limits):
        more = f"more models for {models} of these laws, more text for {len(texts)}{names}"
        yield f"What would narrow the intervals: {more}."


def _replicates(laws: Sequence[Law]) -> Iterator[str]:
    """By how much models of one size differ, and how far off the laws are; nothing where no size was trained twice."""
    tests = [test for law in laws if (test := law.fit.pure_error) is not None]
    if tests:
        within, off = [test.sd_rest for test in tests], [test.sd_about for test in tests]
        misfit = sum(test.p < SIGNIFICANT for test in tests)
        yield (
            f"Models of one size and different seeds differ by {min(within):.2g} to {max(within):.2g} in ln y "
            f"(standard deviation); the laws are off by {min(off):.2g} to {max(off):.2g}, {misfit} of {len(tests)} "
            "by significantly more than the seeds: misfit, not scatter."
        )
