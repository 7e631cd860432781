"""Shows outcomes as tables: what passed, the laws and RBP_k of tokens recovered from it, and the hits learned."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from rbpx.display.view import Column, Table, View, decimal, ends, magnitude, state, text, whole, with_ends
from rbpx.display.vocabulary import decimals, signed
from rbpx.laws.counts.fit import Correction, OutcomeFit, implied_rbp
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.numeric import Floats
from rbpx.questions.outcomes.analysis import analyse, analyse_file, keep
from rbpx.questions.outcomes.learners import FOLDS, Learner
from rbpx.questions.outcomes.recovery import OutcomeLaws, OutcomesResult
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.runs.select.ways import in_size
from rbpx.status import Status

_ASSUMED: Final = {Correction.none: "independent", Correction.measured: "r measured", Correction.free: "r fitted"}
_LONGEST_NAME: Final = 16
_NOTE: Final = (
    "A sequence of N tokens passes if all are hits, ranks of at most k. Independent: pass ~ Bernoulli(exp(−C·N·S^−α)), "
    "by maximum likelihood; else the number of hits is beta-binomial, r the correlation of two hits of a sequence. "
    "There is no interval where the likelihood has no maximum in more than 5 % of the resamples of the documents."
)
_Sequences = tuple[str, Floats, Floats | None]  # their name; how many there are and passed, [2, M]; correlations [M]
_Law = tuple[str, Estimate, Estimate | None, Estimate | None, Status]


def _of_k(laws: OutcomeLaws, what: str) -> str:
    return what if laws.k is None else f"k = {laws.k:,}, {what}"


def _range(values_M: Floats | None) -> tuple[float | None, float | None]:
    if values_M is None or np.isnan(values_M).any():
        return None, None
    return float(values_M.min()), float(values_M.max())


def _passed(trials: float, passed: float) -> float | None:
    return float(passed / trials) if trials else None


SEQUENCES: Final = View[_Sequences](
    "sequences",
    text("sequences", "sequences", lambda row: row[0]),
    ends("least most", lambda row: _range(row[1][0]), lambda n: f"{n:,.0f}", "number", "of a size"),
    magnitude("smallest", "smallest", lambda row: _passed(*row[1][:, 0]), "share that passed, then of the largest"),
    magnitude("largest", "largest", lambda row: _passed(*row[1][:, -1])),
    ends("r_least r_most", lambda row: _range(row[2]), heading="r", means="over the sizes, on the tokens"),
)
LAWS: Final = View[_Law](
    "laws",
    text("hits assumed", "law", lambda row: row[0]),
    with_ends("α", "alpha", lambda row: row[1]),
    with_ends("bias", "bias", lambda row: row[2], signed, "of α against the law of the tokens", ends_spare=2),
    with_ends("fitted r", "r", lambda row: row[3], means="one for all sizes and N", spare=1, ends_spare=3),
    state(lambda row: row[4]),
)
LEARNERS: Final = View[Learner](
    "learners",
    text("k", "k", lambda row: f"{row.k:,}"),
    text(
        "learned from", "learner", lambda row: row.learner,
        "outcomes: which sequences of N tokens passed; naive: each token with the outcome of its sequence; "
        "constant: outcomes, without features; tokens: the true hits, the ceiling",
    ),
    whole("N", "n", lambda row: row.n),
    with_ends(
        "AUC", "auc", lambda row: None if row.learner == "constant" else row.auc, decimals(3),
        "not known for a constant, which ranks nothing within a fold",
    ),
    with_ends("loss", "log_loss_nats", lambda row: row.log_loss_nats, means="log loss, nats", ends_spare=4),
    decimal("est.", "told_nats", lambda row: row.told_nats, means="loss, estimated from outcomes", spare=3),
    with_ends(
        "excess", "excess", lambda row: row.excess, decimals(3),
        "mean predicted chance minus RBP_k, the true share of hits", 1, 5,
    ),
    decimal("RBP_k", "rbp", lambda row: row.rbp, 3, spare=2),
    state(lambda row: row.status),
)  # fmt: skip


def _sequences(laws: OutcomeLaws) -> Iterator[_Sequences]:
    for at, n in enumerate(laws.counts.lengths):
        r_M = None if laws.counts.r_ML is None or n == 1 else laws.counts.r_ML[:, at]
        yield _of_k(laws, f"N = {n}"), laws.counts.n_2ML[..., at], r_M


def _laws(laws: OutcomeLaws) -> Iterator[_Law]:
    if laws.tokens is not None:
        law = laws.tokens.law
        yield _of_k(laws, "tokens themselves"), law.exponent, None, None, law.status
    for (n, correction), fit in laws.fits.items():
        name = _of_k(laws, f"{'all N' if n is None else f'N = {n}'}, {_ASSUMED[correction]}")
        yield name, fit.exponent, laws.bias(fit), Estimate(fit.r, fit.r_lo, fit.r_hi), fit.status


def _rbp(laws: OutcomeLaws) -> list[Column[int] | Sequence[Column[int]]]:
    """RBP_k of each size, as counted, and by the laws that a benchmark allows: of each N, and of all with one r."""

    def implied(n: int | None, fit: OutcomeFit, spare: int) -> Sequence[Column[int]]:
        name, key = ("all, fitted r", "rbp") if n is None else (f"N = {n}", f"rbp_{n}")
        return with_ends(name, key, lambda m: Estimate(*implied_rbp(fit, laws.counts.S[m])), ends_spare=spare)

    size: Column[int] = text("size", "size", lambda m: _short(laws.sizes[m]))
    tokens: Column[int] = decimal("tokens", "rbp_tokens", laws.rbp_of_tokens, spare=1)
    shown = [(n, fit) for (n, how), fit in laws.fits.items() if how is (Correction.none if n else Correction.free)]
    known = [implied(n, fit, at) for at, (n, fit) in enumerate(shown, 1) if fit.alpha is not None]
    return [size, tokens, *known] if known else []


def _short(size: str) -> str:
    """The end of a long name, by which the models of a hub differ."""
    return size if len(size) <= _LONGEST_NAME else f"…{size[-_LONGEST_NAME + 1 :]}"


@one_by_one
def tables(result: OutcomesResult) -> Iterator[Table]:
    """The sequences and the laws, for each k the shares of hits that these imply, then the learners of hits."""
    sequences = [each for laws in result.by_k for each in _sequences(laws)]
    yield SEQUENCES.table("Sequences of N tokens", sequences, result.title, note=_NOTE)
    recovered = [law for laws in result.by_k for law in _laws(laws)]
    yield LAWS.table("−ln RBP_k = C · S^−α from the outcomes", recovered, result.title)
    for laws in result.by_k:
        columns, title = _rbp(laws), _of_k(laws, "RBP of single tokens")
        if columns:
            yield View[int]("rbp", columns).table(title, range(len(laws.sizes)), result.title)
    if result.group is not None:
        smaller, run = result.group.runs[-2:]
        note = (
            f"Logistic models of P(hit), learned from {FOLDS - 1} of {FOLDS} parts of the documents and judged on the "
            "tokens of the remaining part; intervals over documents."
        )
        title = f"Hits of {run.size}, with features from {smaller.size}"
        yield LEARNERS.table(title, result.learners, result.title, note=note)


QUESTION = of_parts(each(analyse), keep, tables, of_file=analyse_file, select=partial(in_size, along=False))
