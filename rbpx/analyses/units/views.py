"""Units across tokenizers as tables: bits per byte, ranks of the true token, and these relative to V."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.question import Question, each
from rbpx.analyses.units.analysis import GroupUnits, RunUnits, analyse, estimates, keep
from rbpx.analyses.units.conversion import PERCENTS, SHARES
from rbpx.display.column import Column, Written, text, whole, with_ends
from rbpx.display.numbers import UNKNOWN, decimals, number, rough
from rbpx.display.view import Table, View


def tables(results: Sequence[GroupUnits]) -> list[Table]:
    """Nats and bits of each group, then its ranks."""
    return [
        view.table(title, result.runs, result.group.title, note=note.format(ties=result.group.ties.value))
        for result in results
        for view, title, note in (
            (BITS, "Nats per token and bits per byte", "Ties {ties}; intervals over documents."),
            (RANKS, "Rank of the true token", ""),
            (RELATIVE, "Rank/V, and RBP at k of the same share of V", "Rank/V and bits/byte compare any tokenizers."),
        )
    ]


def _estimate(
    heading: str, name: str, how: Written = number, means: str = "", ends_spare: int = 0
) -> Sequence[Column[RunUnits]]:
    return with_ends(heading, name, lambda row: estimates(row.units)[name], how, means, ends_spare=ends_spare)


def _rank(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,g}"


SIZE: Final[Column[RunUnits]] = text("size", "size", lambda row: row.run.size)
QUANTILES: Final = {percent: "median" if percent == 50 else f"{percent} %" for percent in PERCENTS}
BITS: Final = View[RunUnits](
    "bits",
    (
        SIZE,
        whole("S", "non_embedding_params", lambda row: row.run.non_embedding_params, spare=2),
        whole("V", "vocab_size", lambda row: row.run.vocab_size, spare=1),
        whole("tokens", "n_tokens", lambda row: row.run.n_tokens, spare=3),
        _estimate("nats/token", "nats_per_token", means="compares models of one tokenizer only, as ranks do"),
        _estimate(
            "bits/byte", "bits_per_byte",
            means="nats of the scored tokens / ln 2 / bytes (UTF-8) of the text that they encode, so without the first "
            "token and special tokens; in a family one constant times nats/token, so their law in S has the α of "
            "cross-entropy (fit laws=cross_entropy); –: the run was measured before bytes were counted by token: "
            "`store rm` it and measure again",
        ),
        _estimate("tok/byte", "tokens_per_byte", ends_spare=5),
        text("run", "run_id", lambda row: row.run.run_id, spare=4),
    ),
)  # fmt: skip
RANKS: Final = View[RunUnits]("ranks", (SIZE, *(_estimate(of, f"rank_{p}", _rank) for p, of in QUANTILES.items())))
RELATIVE: Final = View[RunUnits](
    "relative",
    (
        SIZE,
        *(_estimate(of, f"relative_rank_{p}", rough, ends_spare=1) for p, of in QUANTILES.items()),
        *(_estimate(f"V/{1 / share:.0f}", f"rbp_at_{share:g}_V", decimals(3)) for share in SHARES),
    ),
)
QUESTION = Question(each(analyse), keep, tables)
