"""Telling documents in the report: each text token by token, under the smallest model and the largest."""

from collections.abc import Sequence
from math import exp
from typing import Final

from rbpx.analyses.view.analysis import Reading, View
from rbpx.counts import number_of
from rbpx.display.numbers import short
from rbpx.display.passage import Passage, Piece, grade
from rbpx.display.passage import Reading as Column
from rbpx.display.section import Section, Sources
from rbpx.display.visible import visible

__all__ = ["section"]

_LONGEST: Final = 240  # tokens that are shown, the first ones
_GAP: Final = Piece("…", None, "not scored")


def section(results: Sequence[View], sources: Sources) -> Section:
    """A document of each text."""
    said = (
        "Each token has the colour of its rank: the place of the true token among all that the model could have "
        "predicted. The same lines stand beside each other under the smallest model and the largest."
    )
    passages = tuple(_passage(view) for view in results)
    return Section("texts", "Texts, token by token", (said,), (), passages=passages)


def _passage(view: View) -> Passage:
    ordered = sorted(view.readings, key=lambda reading: reading.run.non_embedding_params)
    ends = ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]
    n_tokens = max(len(reading.positions) for reading in ends)
    shown = "" if n_tokens <= _LONGEST else f" Its first {_LONGEST} of {number_of(n_tokens, 'scored token')}."
    return Passage(
        name=f"{view.dataset}-{view.doc_id}",
        title=f"{view.dataset}, document {view.doc_id} ({view.source_id})",
        rule=f"Chosen by rule: {view.rule}.{shown}",
        command=f"python -m rbpx view dataset={view.dataset} doc={view.doc_id} --format html --output text.html",
        readings=tuple(_column(view, reading) for reading in ends),
    )


def _column(view: View, reading: Reading) -> Column:
    about = f"{reading.nats_a_token:.3f} nats a token, rank 1 for {reading.hit_share:.0%}, of the whole document"
    pieces = []
    if view.item is not None and view.item.context is not None:
        pieces.append(Piece(visible(view.item.context), None, "context"))
    elif reading.gap_before:
        pieces.append(_GAP)
    columns = reading.texts, reading.ranks, reading.nats, reading.gaps_after
    for text, rank, nats, gap in list(zip(*columns, strict=True))[:_LONGEST]:
        shown = "\N{REPLACEMENT CHARACTER}" if text is None else visible(text)
        pieces.append(Piece(shown, grade(rank), f"rank {rank:,g}, probability {short(exp(-nats))}"))
        if gap:
            pieces.append(_GAP)
    return Column(reading.name, about, tuple(pieces))
