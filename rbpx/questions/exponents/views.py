"""Tables of exponents: of each family and text, and of its tokens that improve; the mean differences in a sentence."""

from collections.abc import Iterator, Sequence
from functools import partial

from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.section import interval_of
from rbpx.display.view import Column, Table, View, decimal, share, text, with_ends
from rbpx.errors import number_of
from rbpx.questions.exponents import pooled_views
from rbpx.questions.exponents.analysis import UP_TO, Exponents, OfTokens, Pair, analyse, analyse_file, keep
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.select.ways import in_size
from rbpx.status import Status

_Row = tuple[Pair, OfTokens]


@one_by_one
def tables(result: Exponents) -> Iterator[Table]:
    """All pairs, each followed by its tokens that improve and the others; then families on one text."""
    rows = [(pair, of) for pair in result.pairs for of in (pair.whole, *pair.classes)]
    if rows:
        view = _view(sorted({k for pair in result.pairs for k in pair.alphas}))
        yield view.table("Exponents of the laws in S", rows)
    if result.pooled:
        yield pooled_views.table(result.pooled)


@one_by_one
def sentences(result: Exponents) -> Iterator[str]:
    """The means over all pairs, then what families on one text share."""
    if result.pairs:
        yield _means(result)
    yield from pooled_views.sentences(result.pooled)


def _means(result: Exponents) -> str:
    unclear = "" if result.status is Status.ok else ", which cannot be told from 0"
    if result.difference.ends is None:
        unclear = "" if result.group else ", since slopes of one family do not say how its models scatter"
    return (
        f"Mean over {number_of(len(result.pairs), 'pair')}: α of −ln RBP_1 minus that of CE is "
        f"{interval_of(result.difference, 4)}{unclear}; α changes by {interval_of(result.drift, 4)} per unit of ln k."
    )


def _of_k(k: int) -> Column[_Row]:
    def alpha(row: _Row) -> float | None:
        return row[0].alphas.get(k) if row[1].tokens is None else None

    return decimal(f"k = {k:,}", f"alpha_{k}", alpha, 3, spare={1: 0, UP_TO: 3}.get(k, 5))


def _view(ks: Sequence[int]) -> View[_Row]:
    return View(
        "pairs",
        text("text", "dataset", lambda row: row[0].title),
        text("family", "family", lambda row: row[0].names["family"]),
        text(
            "tokens", "tokens", lambda row: row[1].tokens, "improving: tokens whose ids `learning` finds to get "
            "better with size; they were chosen on the same text, so their exponents are a little too large", 1,
        ),
        share("share", "share", lambda row: row[1].share, 0, spare=2),
        decimal("CE", "alpha_cross_entropy", lambda row: row[1].alpha_cross_entropy, 3),
        [_of_k(k) for k in ks],
        with_ends(
            "k = 1 − CE", "difference", lambda row: row[1].difference,
            means="α of −ln RBP_1 minus that of cross-entropy, from the law of their ratio; 95 % over documents and "
            "models, for the mean over families and texts too; what models of a size have in common counts once",
        ),
        with_ends(
            "for each ln k", "drift", lambda row: row[0].drift if row[1].tokens is None else None,
            means=f"change of α per unit of ln k, up to k = {UP_TO}", spare=4, ends_spare=6,
        ),
    )  # fmt: skip


@one_by_one
def figures(result: Exponents, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The residuals of each law of families on one text."""
    return pooled_views.figures(result.pooled, fit_ids)


QUESTION = of_parts(
    analyse,
    keep,
    tables,
    sentences,
    figures,
    of_file=analyse_file,
    together="family",
    select=partial(in_size, sizes=3, along=False),
)
