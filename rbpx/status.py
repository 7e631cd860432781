"""The outcomes of a fit, and the remedy of each."""

from collections.abc import Iterable
from enum import StrEnum

__all__ = ["Doubted", "Status", "first_of", "in_order"]


class Status(StrEnum):
    """The outcome of a fit, which every table and figure shows beside its numbers.

    Several may hold at once: `params["reasons"]` of a fit lists them, and its status is the first in the order below:
    outcomes without numbers, then those that deny a law, then those that warn against relying on it.
    """

    ok = "ok"
    # no numbers, or no meaningful ones
    too_few_sizes = "too_few_sizes"
    not_positive = "not_positive"
    sign_change = "sign_change"
    not_converged = "not_converged"
    too_few_tokens = "too_few_tokens"
    not_known = "not_known"
    unreachable = "unreachable"
    rate_rises = "rate_rises"
    too_early = "too_early"
    # no law, or not one of size alone
    mixed = "mixed"
    no_trend = "no_trend"
    bends = "bends"
    # a law, with a warning
    backtest_failed = "backtest_failed"
    intervals_missed = "intervals_missed"
    given_refused = "given_refused"
    one_run = "one_run"
    uneven_scatter = "uneven_scatter"
    tokens = "tokens"
    collinear_design = "collinear_design"
    families_differ = "families_differ"
    barely_determined = "barely_determined"
    one_document = "one_document"
    dependent_documents = "dependent_documents"
    at_bound = "at_bound"
    beyond = "beyond"
    not_judged = "not_judged"
    leaves_law = "leaves_law"
    no_decay_seen = "no_decay_seen"
    other_recipe = "other_recipe"
    plan_unlike_finished = "plan_unlike_finished"
    other_size = "other_size"

    @property
    def label(self) -> str:
        """Its short name for people; its value is for csv, json and SQL."""
        return _LABEL.get(self, self.value.replace("_", " "))

    @property
    def remedy(self) -> str:
        """What to do about it, in one line."""
        return _REMEDY[self]


_LABEL = {
    Status.ok: "passes",
    Status.backtest_failed: "failed",
    Status.intervals_missed: "narrow",
    Status.given_refused: "refused",
    Status.barely_determined: "barely",
    Status.uneven_scatter: "uneven",
    Status.collinear_design: "collinear",
    Status.families_differ: "differ",
    Status.dependent_documents: "dependent",
    Status.plan_unlike_finished: "unlike plan",
}
_REMEDY = {
    Status.ok: "No test speaks against it, which is no proof of it: read its interval.",
    Status.too_few_sizes: "A power law needs 3 sizes (or k), 4 with an offset, 2 from outcomes: measure more models.",
    Status.not_positive: "A share of 0 or 1, or a value <= 0, has no law: choose another k, N or window, or more.",
    Status.sign_change: "The term changes sign over the sizes, so no power law fits: read its values instead.",
    Status.not_converged: "The search found no maximum: do not use the numbers, and look at the counts.",
    Status.too_few_tokens: "Fewer than 3 ranks, no sequence of N, or no token of all sizes: measure more tokens.",
    Status.at_bound: "A constant is best at its edge, so these data do not need its term: read the simpler power law.",
    Status.collinear_design: "Size and tokens vary together, so their effects are mixed: predict near their line.",
    Status.mixed: "Points differ in more than size (states amid a training, or other tokens): try checkpoints=last.",
    Status.families_differ: "The families do not share the constants of one law: read the multiplier at each compute.",
    Status.one_document: "All tokens are from one document, so nothing is known about others: give more documents.",
    Status.dependent_documents: "The interval is too narrow, as neighbouring documents are alike: chunk whole texts.",
    Status.not_known: "Not known of enough models, of documents, or in whole ranks: measure it, or ties=pessimistic.",
    Status.no_trend: "The exponent cannot be told from 0 (or success from chance), so no trend: do not extrapolate.",
    Status.bends: "The points curve: the law is a mean slope, not to be extrapolated; predictions allow for it.",
    Status.backtest_failed: "Its backtest failed: smaller sizes miss the largest, so do not extrapolate without more.",
    Status.intervals_missed: "Its backtests miss their intervals, the last or many: take this one as too narrow.",
    Status.given_refused: "The points speak against a given constant: compare what is predicted without it.",
    Status.one_run: "One size lies off the law of the others: check its training, or train it again.",
    Status.uneven_scatter: "Larger models scatter more: take intervals as too narrow, and train large sizes again.",
    Status.tokens: "Tokens do not follow size, so the law mixes what both do: ask surface, or predict with S= and D=.",
    Status.barely_determined: "No point tells a constant, or its interval is wider than it, or unbounded: add sizes "
    "(or tokens, or N) beyond.",
    Status.beyond: "Outside what was measured (10 times the sizes, or losses of one side): measure models nearer it.",
    Status.unreachable: "The law never comes to this level however much it is given: no size, and no multiplier.",
    Status.not_judged: "It was fitted with judge=False, so nothing tested it: leave that out, or test it yourself.",
    Status.rate_rises: "The rate rises again after its warm-up, which the law does not describe: no end is predicted.",
    Status.too_early: "Too few states follow the warm-up and a tenth of the plan: ask again when the run is further.",
    Status.leaves_law: "Its losses have risen off their law and stayed there: look at the run from that step on.",
    Status.no_decay_seen: "Nobody saw a rate fall, so what its fall will give is guessed: finish a run of a size once.",
    Status.other_recipe: "Finished runs are of another recipe, which teaches nothing: take it as a run alone.",
    Status.plan_unlike_finished: "Its plan is 4 times as long as finished ones, or anneals twice as much: doubt it.",
    Status.other_size: "Finished runs are of another size, whose level is none of its own: the interval allows for it.",
}


def in_order(statuses: Iterable[Status | None]) -> tuple[Status, ...]:
    """Returns the statuses that hold, each once, in the order of `Status` and without `ok`."""
    held = set(statuses) - {Status.ok}
    return tuple(status for status in Status if status in held)


def first_of(statuses: Iterable[Status | None]) -> Status:
    """Returns the status to show: the first that holds, or `ok`."""
    return next(iter(in_order(statuses)), Status.ok)


class Doubted:
    """A result with warnings: every status that holds for it."""

    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons, which is shown."""
        return first_of(self.reasons)
