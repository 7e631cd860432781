"""A text in the terminal: each token in the colour of its rank, or marked where there are no colours."""

import json
from collections.abc import Iterator, Sequence
from math import exp
from typing import Final

from rich.text import Text

from rbpx.analyses.view.analysis import Reading, View
from rbpx.display.numbers import short
from rbpx.display.passage import GRADES, grade
from rbpx.display.tables import console, grid, put
from rbpx.display.visible import visible
from rbpx.groups.item_views import ItemView

# Light grounds under black letters, apart in lightness as well as in hue, so that they differ for every kind of eye and
# on light and dark terminals; those beyond are bold too.
STYLES: Final = ("", "black on #b7d7f2", "black on #f2d15c", "bold black on #e8823a")
SURPRISES: Final = 8  # places whose best tokens are printed
MARKS: Final = (("", ""), ("", ""), ("‹", "›"), ("«", "»"))
_UNSCORED: Final = "…"
_MOST_RANKS: Final = 20


def show(results: Sequence[View]) -> None:
    """Print each document under its last model, or under both that were named."""
    screen = console()
    coloured = screen.color_system is not None
    for view in results:
        asked = view.readings if len(view.readings) == 2 else view.readings[-1:]
        for reading in asked:
            screen.print(
                f"{view.dataset}, document {view.doc_id} ({view.source_id}; {view.rule}), {reading.name}: "
                f"{len(reading.ranks):,} scored tokens, {reading.nats_a_token:.3f} nats a token, rank 1 for "
                f"{reading.hit_share:.0%}",
                style="bold",
                markup=False,
                soft_wrap=True,
            )
            written = _written(reading, coloured)
            if view.item is not None and view.item.context is not None:
                # The context stands in place of the ellipsis, which is of a text whose beginning is not known.
                written = Text.assemble((visible(view.item.context), "dim"), written[len(_UNSCORED) :])
            screen.print(written, soft_wrap=not coloured)
            screen.print()
            for line in _surprises(reading):
                screen.print(line, markup=False, highlight=False, soft_wrap=True)
        if view.item is not None:
            _print_item(view, view.item)
    if coloured:
        legend = (piece for name, style in zip(GRADES, STYLES, strict=True) for piece in ((f" {name} ", style), " "))
        screen.print(Text.assemble("Ranks: ", *legend))
    else:
        screen.print("Ranks: ‹to 100›, «beyond»; unmarked to 10. … was not scored.")


def _surprises(reading: Reading) -> Iterator[str]:
    """What the model held for more likely at the places that surprised it most, where that was kept."""
    if not reading.best:
        return
    places = sorted(range(len(reading.nats)), key=lambda i: (-reading.nats[i], i))[:SURPRISES]
    yield f"The {len(places)} places of the most nats, and what {reading.name} held for best there:"
    for at in places:
        best = ", ".join(f"{_quoted(text)} {exp(-nats):.2g}" for text, nats in reading.best[at])
        yield f"  {_quoted(reading.texts[at])} at {reading.positions[at]}, rank {reading.ranks[at]:,g}: {best}"
    yield ""


def _quoted(text: str | None) -> str:
    return "�" if text is None else json.dumps(visible(text), ensure_ascii=False)


def _print_item(view: View, item: ItemView) -> None:
    """The item under every model: how likely its target or right choice is, and the ranks of its tokens."""
    columns = ["model", "right", "probability", "ranks of its tokens"]
    table = grid(f"{view.dataset}, item {item.item}", columns, 2)
    table.columns[-1].justify = "left"
    for reading, of in zip(view.readings, item.readings, strict=True):
        ranks = " ".join(f"{rank:g}" for rank in of.ranks[:_MOST_RANKS]) + (" …" if len(of.ranks) > _MOST_RANKS else "")
        table.add_row(reading.name, "yes" if of.is_right else "no", short(of.probability), ranks)
    put(console(), table)
    console().print(
        "Right: by log-likelihood among choices, or greedily where there are none. Probability: of the right choice "
        "among the choices, or of the target.\n",
        soft_wrap=True,
    )


def _written(reading: Reading, coloured: bool) -> Text:
    """The document; an ellipsis stands where tokens were not scored."""
    written = Text()
    for token, style, (begin, end) in _pieces(reading):
        body = token.rstrip("\n")
        lines = token[len(body) :]
        if coloured:
            written.append(visible(body) + ("⏎" if lines and style else ""), style=style)
            written.append(lines)
        else:
            core = body.strip()
            before, _, after = body.partition(core) if core else (body, "", "")
            written.append(f"{visible(before)}{begin}{visible(core)}{end}{visible(after)}{lines}")
    return written


def _pieces(reading: Reading) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Each token with its colour and its marks, and what was not scored."""
    if reading.gap_before:
        yield _UNSCORED, "", ("", "")
    for text, rank, gap in zip(reading.texts, reading.ranks, reading.gaps_after, strict=True):
        at = grade(rank)
        yield ("�" if text is None else text), STYLES[at], MARKS[at]
        if gap:
            yield _UNSCORED, "", ("", "")
