"""The outcomes of a fit; status.tsv has the label and the remedy of each."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Doubted", "Status", "first_of", "in_order", "status_keys"]


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
        return _table()[self][0]

    @property
    def finding(self) -> str:
        """What was found, as half a sentence: the remedy up to its colon, without brackets."""
        found = re.sub(r" \([^)]*\)", "", self.remedy.partition(":")[0])
        return f"{found[0].lower()}{found[1:]}"

    @property
    def remedy(self) -> str:
        """What to do about it, in one line."""
        return _table()[self][1]


@cache
def _table() -> dict[str, tuple[str, str]]:
    _, *lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    return {name: (label, remedy) for name, label, remedy in (line.split("\t") for line in lines)}


def in_order(statuses: Iterable[Status | None]) -> tuple[Status, ...]:
    """The statuses that hold, each once, in the order of `Status` and without `ok`."""
    held = set(statuses) - {Status.ok}
    return tuple(status for status in Status if status in held)


def first_of(statuses: Iterable[Status | None]) -> Status:
    """The status to show: the first that holds, or `ok`."""
    return next(iter(in_order(statuses)), Status.ok)


def status_keys(statuses: Iterable[Status | None]) -> dict[str, Any]:
    """The status to show and all that hold, as a row has them."""
    held = in_order(statuses)
    return {"status": first_of(held).value, "reasons": [each.value for each in held]}


class Doubted:
    """A result with warnings: every status that holds for it."""

    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons, which is shown."""
        return first_of(self.reasons)
