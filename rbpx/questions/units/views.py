"""Shows units across tokenizers as tables: bits per byte, ranks of the true token, and ranks relative to V."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rbpx.display.view import Column, Table, View, Written, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, number, rough
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.units.analysis import PERCENTS, SHARES, GroupUnits, RunUnits, analyse, keep
from rbpx.runs.select.ways import in_size


@one_by_one
def tables(result: GroupUnits) -> Iterator[Table]:
    """Nats and bits of each group, then its ranks."""
    rows, about, ties = result.runs, result.group.title, result.group.ties.value
    yield BITS.table("Nats per token and bits per byte", rows, about, note=f"Ties {ties}; intervals over documents.")
    yield RANKS.table("Rank of the true token", rows, about)
    note = "Rank/V and bits/byte can be compared across tokenizers."
    yield RELATIVE.table("Rank/V, and RBP at k of the same share of V", rows, about, note=note)


def _estimate(
    heading: str, name: str, how: Written = number, means: str = "", ends_spare: int = 0
) -> Sequence[Column[RunUnits]]:
    return with_ends(heading, name, lambda row: row[1][name], how, means, ends_spare=ends_spare)


def _rank(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,g}"


SIZE: Final[Column[RunUnits]] = text("size", "size", lambda row: row[0].size)
QUANTILES: Final = {percent: "median" if percent == 50 else f"{percent} %" for percent in PERCENTS}
BITS: Final = View[RunUnits](
    "bits",
    SIZE,
    whole("S", "non_embedding_params", lambda row: row[0].non_embedding_params, spare=2),
    whole("V", "vocab_size", lambda row: row[0].vocab_size, spare=1),
    whole("tokens", "n_tokens", lambda row: row[0].n_tokens, spare=3),
    _estimate("nats/token", "nats_per_token", means="can be compared under one tokenizer only, as ranks can"),
    _estimate(
        "bits/byte", "bits_per_byte",
        means="nats of the scored tokens / ln 2 / bytes (UTF-8) of the text that they encode, so without the first "
        "token and special tokens; within a family a constant times nats/token, so their law in S has the α of "
        "cross-entropy (fit laws=cross_entropy); – where a run was measured before bytes were counted by token: "
        "`store rm` it and measure it again",
    ),
    _estimate("tok/byte", "tokens_per_byte", ends_spare=5),
    text("run", "run_id", lambda row: row[0].run_id, spare=4),
)  # fmt: skip
RANKS: Final = View[RunUnits]("ranks", (SIZE, *(_estimate(of, f"rank_{p}", _rank) for p, of in QUANTILES.items())))
RELATIVE: Final = View[RunUnits](
    "relative",
    SIZE,
    *(_estimate(of, f"relative_rank_{p}", rough, ends_spare=1) for p, of in QUANTILES.items()),
    *(_estimate(f"V/{1 / share:.0f}", f"rbp_at_{share:g}_V", decimals(3)) for share in SHARES),
)
QUESTION = of_parts(each(analyse), keep, tables, select=partial(in_size, along=False))
