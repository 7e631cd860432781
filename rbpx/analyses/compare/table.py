"""Two models on one text: the whole, its parts, hits and the places that stand out, as tables."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.compare.analysis import Comparison, Part
from rbpx.display.numbers import UNKNOWN, number, span, with_ends
from rbpx.display.tables import console, grid, put

_LISTED = 5  # documents and passages of each text
_WIDEST = 46  # characters of a name or a passage


def show(results: Sequence[Comparison]) -> None:
    """Print each text: the whole, kinds, places and slices; hits under one tokenizer; what stands out."""
    screen = console()
    for compared in results:
        _print_parts(screen, compared)
        if compared.moves is not None:
            _print_hits(screen, compared)
        _print_passages(screen, compared)
    unit = results[0].unit
    screen.print(
        f"Bits per {unit} of what both models scored, b - a: below 0, b predicts better. Nats of a token are spread "
        "over the bytes that it stands for. Place: from the beginning of the document. Share: of the whole difference. "
        "Hits, gained, lost, same: shares of the tokens. 95 % intervals over documents, none for a single one; "
        "--format json has all documents.",
        soft_wrap=True,
    )
    if unit == "token":
        screen.print(
            "Bytes are not known: a run was measured by an earlier version; remove it with `store rm` and measure it "
            "again for bits per byte.",
            soft_wrap=True,
        )


def _title(compared: Comparison) -> str:
    a, b = compared.names
    return f"{compared.a.dataset}: a = {a}, b = {b}"


def _print_parts(screen: Console, compared: Comparison) -> None:
    unit = compared.unit
    columns = ["", f"{unit}s", "a", "b", "b - a", "95 %", "share", "documents"]
    table = grid(f"{_title(compared)}, bits per {unit}", columns, spare=("documents", "share"))
    by = ""
    listed = 0
    for part in compared.parts:
        if part.by != by:
            table.add_section()
            by, listed = part.by, 0
        listed += 1
        if part.by != "document" or listed <= _LISTED:
            table.add_row(*_cells(part))
    put(screen, table)


def _cells(part: Part) -> list[str]:
    apart = part.difference
    name = part.name if part.by in ("text", "kind") else f"{part.by} {part.name}"
    return [
        escape(name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"),
        f"{apart.n_units:,}",
        number(apart.a.value, 3),
        number(apart.b.value, 3),
        signed(apart.change.value),
        span(apart.change.lo, apart.change.hi),
        UNKNOWN if apart.share is None else f"{apart.share:.1%}",
        f"{apart.n_documents:,}",
    ]


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return UNKNOWN if value is None else f"{value:+.4f}"


def _print_hits(screen: Console, compared: Comparison) -> None:
    columns = ["k", "RBP of a", "of b", "gained", "95 %", "lost", "95 %", "same"]
    table = grid(f"{_title(compared)}, hits (ties {compared.group.ties.value})", columns)
    for at in compared.hits:
        levels = [number(each.value) for each in (at.rbp_a, at.rbp_b)]
        table.add_row(str(at.k), *levels, *with_ends(at.gained), *with_ends(at.lost), number(at.same.value))
    put(screen, table)
    moves = compared.moves
    if moves is not None:
        better, equal, worse = (number(each.value, 3) for each in (moves.better, moves.equal, moves.worse))
        screen.print(f"Ranks from a to b: better {better}, equal {equal}, worse {worse} of the tokens.\n")


def _print_passages(screen: Console, compared: Comparison) -> None:
    if not compared.passages:
        return
    place = f"from {compared.unit}"
    columns = ["text", "b - a, bits", "document", place]
    table = grid(f"{_title(compared)}, where they differ most", columns, spare=(place,))
    for passage in compared.passages[:_LISTED]:
        written = repr(passage.text)[1:-1]
        written = written if len(written) <= _WIDEST else f"{written[: _WIDEST - 1]}…"
        table.add_row(escape(written), f"{passage.change_bits:+.1f}", str(passage.doc_id), f"{passage.first_byte:,}")
    put(screen, table)
