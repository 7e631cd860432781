"""Answers `gaps`."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import with_params
from rbpx.display.section import interval_of
from rbpx.display.table import STATUS, interval, table_of
from rbpx.display.vocabulary import AXES, decimals, law_order, number, whole
from rbpx.laws.names import Method
from rbpx.laws.power.uncertainty import ALPHA
from rbpx.questions.gaps import GapsKeys
from rbpx.questions.gaps.figures import figures
from rbpx.questions.gaps.law import EQUATION
from rbpx.questions.gaps.pairs import LossGap, pairs_of
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group
from rbpx.runs.run import grouped
from rbpx.runs.select.groups import select
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: GapsKeys) -> list[Result]:
    """Fits the gaps of all pairs; a result for each family."""
    pairs = [pair for pair in pairs_of(connection, groups, request) if pair]
    tested = sum(each.gap.p is not None for pair in pairs for each in pair)
    return [_result(of, tested) for of in grouped(pairs, lambda pair: pair[0].a.group.title_of_family).values()]


def _result(pairs: Sequence[Sequence[LossGap]], tested: int) -> Result:
    losses, group = [each for pair in pairs for each in pair], pairs[0][0].a.group
    fits = [_row(each) for each in losses]
    plain = [with_params(row) | {"delta": row["params"]["delta"]} for row in fits]  # not that of Huber's loss
    shown = [row | _named(each) for row, each in zip(plain, losses, strict=True)]
    about = group.title if losses[0].a.where else group.title_of_family
    first = {each.name for each in _main(losses)}
    is_brief = [len(losses) <= _MOST_ROWS or row["loss"] in first for row in shown]
    table = PAIRS.of("Gaps", shown, about, group.axis, brief=is_brief)
    said = [*_counted(losses, tested), *(_sentence(_main(pair)) for pair in pairs[:_MOST_PAIRS])]
    groups, drawn = [pair[0].a.group for pair in pairs], partial(figures, pairs, shown, table)
    return Result(groups, fits, [table], said, drawn, fits, plain=plain)


def _main(losses: Sequence[LossGap]) -> list[LossGap]:
    k = min((each.k for each in losses if each.k is not None), default=None)
    return sorted((each for each in losses if each.k in (None, k)), key=lambda each: law_order(each.law, each.k))


def _named(loss: LossGap) -> Record:
    a, b = loss.a, loss.b
    tokens = f"{a.n_tokens:,} / {b.n_tokens:,}" if a.where else None
    return {"pair": f"{a.name} / {b.name}", "loss": loss.name, "tokens": tokens}


def _row(loss: LossGap) -> Record:
    """The stored row; `dataset` is the text with the higher loss."""
    a, b, gap = loss.a, loss.b, loss.gap
    params = gap.fit.record() | gap.record() | {"loss": loss.law, "equation": EQUATION}
    params["text_hash_b"] = b.group.first.text_hash
    slices, run_ids = [], [*a.group.run_ids, *b.group.run_ids]
    if a.where:
        for of, side in (("a", a), ("b", b)):
            params |= {f"slice_{of}": side.name, f"where_{of}": side.where, f"n_tokens_{of}": side.n_tokens}
        slices, run_ids = sorted([side.name, side.where] for side in (a, b)), sorted(set(run_ids))
    more: Record = {"k": loss.k, "n": [loss.law, *slices] if slices else loss.law, "params": params}
    return record_of(a.group, "gap", gap.fit, run_ids, Method.ols, dataset_b=b.group.first.dataset, **more)


def _counted(losses: Sequence[LossGap], tested: int) -> Iterator[str]:
    judged = [each for each in losses if each.gap.p_adjusted is not None]
    if len({frozenset((each.a.name, each.b.name)) for each in judged}) > 1:
        opens, closes = (sum(each.gap.verdict == verdict for each in judged) for verdict in ("opens", "closes"))
        clearest = min(judged, key=lambda each: (each.gap.p_adjusted, each.gap.p))
        yield (
            f"Of {len(judged)} gaps {opens} open and {closes} close {AXES[losses[0].a.group.axis].grows} (p below "
            f"{ALPHA:g} after Holm over {tested}). The clearest: {_sentence([clearest])}"
        )


def _sentence(losses: Sequence[LossGap]) -> str:
    said, named = list[str](), ""
    for each in losses:
        gap, axis, sides = each.gap, each.a.group.axis, f" that on {each.b.name}"
        by = f", as {axis.value}^{interval_of(gap.delta)}" if gap.verdict in ("closes", "opens") else ""
        what = _BECOMES.get(gap.verdict or "", "without a trend {grows}").format(grows=AXES[axis].grows)
        on = "" if sides == named else f" on {each.a.name}"
        said.append(f"{each.name}{on} is {interval_of(gap.ratio)} times{'' if sides == named else sides}, {what}{by}")
        named = sides
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


_MOST_ROWS: Final = 16
_MOST_PAIRS: Final = 6  # with sentences of their own; 6 texts have 15 pairs, which would fill a page
_BECOMES: Final = {
    "closes": "and the gap closes {grows}",
    "opens": "and the gap opens {grows}",
    "may close": "and the gap may close {grows}",
    "may open": "and the gap may open {grows}",
}


def _p_value(p: float) -> str:
    return "<0.001" if p < 0.0005 else number(p, 3)


PAIRS: Final = table_of(
    "pairs", ("A / B", "pair"), ("loss", "loss"),
    *interval("ratio", "ratio", decimals(3), "L_A / L_B at the geometric mean of {x}, A the harder"),
    *interval("δ", "delta", number, "exponent of the ratio in {x}"),
    ("p", "p", _p_value, "of δ = 0"),
    ("p Holm", "p_adjusted", _p_value, "for all gaps asked for"),
    ("R²", "r2", ".3f"), ("sizes", "n_points", whole),
    ("tokens", "tokens", str, "of the slices"),
    ("gap", "verdict"), STATUS,
    first="pair loss ratio delta verdict status, delta_lo, ratio_lo p_adjusted, p, r2, n_points",
)  # fmt: skip
QUESTION = Question(answer, select=partial(select, sizes=3, best_of_budget=False))
