"""Says in sentences up to which k the law holds, and what ends it; a row is a law with what its regime of k adds."""

from collections.abc import Sequence

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AxisWords, number, rough, short
from rbpx.status import Status
from rbpx.store.store import Record


def word(row: Record) -> str:
    """Whether the law holds at a k, or why it does not."""
    if row["stands"]:
        return "holds"
    status = Status(row["status"] or Status.ok)
    if status is not Status.ok:
        return status.label
    return "reversed" if row["alpha"] is not None and row["alpha"] < 0 else "noise"


def sentences(rows: Sequence[Record], words: AxisWords) -> list[str]:
    """The largest k of the law, and why it is the largest."""
    return [*_reach(rows, words), *_of_noise(rows)] if rows else ["RBP_k is not known at any k of the grid."]


def _reach(rows: Sequence[Record], words: AxisWords) -> list[str]:
    first, supported = rows[0], rows[0]["supported_up_to_k"]
    if supported is None:
        holds = ", ".join(f"{row['k']:,}" for row in rows if row["stands"])
        others = f"; it holds at k = {holds}" if holds else ", and at no other k of the grid"
        return [f"Already at k = {first['k']:,} the law does not hold ({word(first)}){others}."]
    after = next((row for row in rows if row["k"] > supported), None)
    if after is None:
        return [f"The law holds at every k of the grid, up to {supported:,}."]
    why = f"At the next k, {after['k']:,}, it does not ({word(after)})"
    if after["n_misses"] is not None:
        why += f"; {after['n_misses']:,} tokens at the largest {words.one} have a larger rank"
        if after["alpha"] is not None:
            noise = max(filter(None, (after["binomial_sd"], after["document_sd"])), default=None)
            why += f", α is {interval_of(estimate_in(after, 'alpha'), 4)}, "
            why += f"and the noise is {short(noise)} against a signal of {short(after['signal'])}"
    return [f"The law holds at every k of the grid up to {supported:,}.", f"{why}."]


def _of_noise(rows: Sequence[Record]) -> list[str]:
    """Whether noise ends the law, at the first k beyond the largest one at which it holds."""
    last = max((row["k"] for row in rows if row["stands"]), default=0)
    end = next((row for row in rows if row["k"] > last and row["r2"] is not None and row["predicted"]), None)
    if end is None:
        return []
    noise = end["predicted"]
    said = f"At k = {end['k']:,} R² is {number(end['r2'], 3)}; with the noise of so few misses a law that goes on "
    said += f"would show {interval_of(estimate_in(noise, 'r2'))}"
    if noise["is_noise"]:
        more = "" if noise["n_tokens"] is None else f"; about {rough(noise['n_tokens'])} tokens would show its slope"
        return [f"{said}, so noise may be what ends it{more}."]
    part = "" if noise["explained"] is None else f", {max(noise['explained'], 0.0):.0%} of the fall of R²"
    return [f"{said}{part}, so noise does not end it, and more tokens would not move the end."]
