"""Tables of two models on one text: the whole and its parts, hits at each k, and where they are furthest apart."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, share, text, whole, with_ends, written
from rbpx.display.vocabulary import shortened, signed
from rbpx.questions.compare.analysis import Comparison, Hits, Passage, analyse, keep
from rbpx.questions.compare.parts import Part
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.select.side import name_of
from rbpx.runs.select.ways import in_size

_LISTED: Final = 5  # documents and passages of each text
_OF_TOKENS: Final = (
    " An earlier version measured one of the runs and kept no bytes; remove it with `store rm` and measure it again."
)


@one_by_one
def tables(compared: Comparison) -> Iterator[Table]:
    """The parts of a text, hits where both models have one tokenizer, and passages."""
    unit, about = compared.unit, f"{compared.a.dataset}: a = {name_of(compared.a)}, b = {name_of(compared.b)}"
    note = (
        "Only text that both scored counts; the nats of a token are spread over its bytes. Length and place are in "
        f"{unit}s, places from the beginning of a document. 95 %: over documents, no interval for a single document; "
        "--format json has all documents."
    )
    documents = [part for part in compared.parts if part.by == "document"]
    rows = [*(part for part in compared.parts if part.by != "document"), *documents[:_LISTED]]
    yield PARTS.table(f"Bits per {unit}", rows, about, note=note + (_OF_TOKENS if unit == "token" else ""))
    note = f"RBP, gained, lost and same are shares of the tokens; ties {compared.group.ties.value}."
    yield HITS.table("Hits", compared.hits, about, note=note)
    yield PASSAGES.table("Where they differ most", compared.passages[:_LISTED], about)


@one_by_one
def sentences(compared: Comparison) -> Iterator[str]:
    """Which way ranks move on a text."""
    if compared.moves:
        said = ", ".join(f"{way} {interval_of(of)}" for way, of in compared.moves.items())
        yield f"Ranks on {compared.a.dataset} from a to b, as shares of the tokens: {said}."


def _part(part: Part) -> str:
    of = {"text": "", "kind": "", "document": "doc "}.get(part.by, f"{part.by} ")
    return shortened(f"{of}{part.name}", 24)


PARTS: Final = View[Part](
    "parts",
    text("part", "name", _part),
    whole("length", "n_units", lambda part: part.n_units),
    with_ends("a", "bits_a", lambda part: part.a, ends_spare=3),
    with_ends("b", "bits_b", lambda part: part.b, ends_spare=3),
    with_ends("b − a", "change", lambda part: part.change, signed, "below 0, b predicts better"),
    share("share", "share", lambda part: part.share, means="part of the whole difference", spare=1),
    whole("documents", "documents", lambda part: part.n_documents, spare=2),
)
HITS: Final = View[Hits](
    "hits",
    whole("k", "k", lambda row: row[0]),
    with_ends("RBP of a", "rbp_a", lambda row: row[1]["rbp_a"], ends_spare=2),
    with_ends("of b", "rbp_b", lambda row: row[1]["rbp_b"], ends_spare=2),
    with_ends("gained", "gained", lambda row: row[1]["gained"]),
    with_ends("lost", "lost", lambda row: row[1]["lost"]),
    with_ends("same", "same", lambda row: row[1]["same"], means="tokens that both hit or both miss", ends_spare=1),
)
PASSAGES: Final = View[Passage](
    "passages",
    text("text", "text", lambda passage: shortened(repr(passage.text)[1:-1], 46)),
    written("b − a, bits", "change_bits", lambda passage: passage.change_bits, lambda bits: signed(bits, 1)),
    whole("document", "doc_id", lambda passage: passage.doc_id),
    whole("place", "first_byte", lambda passage: passage.first_byte, spare=1),
)
QUESTION = of_parts(analyse, keep, tables, sentences, together="all", select=partial(in_size, along=False))
