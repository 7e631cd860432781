"""What a report begins with: what to train, at one budget for all variants of a family."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import Fact, ends_of, fact_of
from rbpx.display.vocabulary import law_title, short, spoken
from rbpx.laws.surface.next_runs import TENFOLD
from rbpx.questions.question import Grids, OnPage
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.run import grouped


def facts(result: Result) -> Iterator[Fact]:
    """Size, tokens and loss of the best run of the first budget."""
    for row in [row for row in result.rows if row["kind"] == "best" and row["S"] is not None][:1]:
        for what, key in (("parameters", "S"), ("training tokens", "D")):
            yield what, spoken(row[key], 3), ends_of(estimate_in(row, key), spoken)
        yield fact_of(f"{law_title(row['law'], row['k'])} of such a run", estimate_in(row, "y"), row["status"])
        yield "compute, FLOPs", short(row["C"]), "6 × parameters × tokens"


def says_what_to_train(result: Result) -> bool:
    """Whether there is a best run, of known size and tokens."""
    return any(row.get("kind") == "best" and row["S"] is not None for row in result.rows)


def at_one_budget(grids: Grids, groups: Sequence[Group], is_opened: bool) -> Sequence[Grids]:
    """The grids by family, with one budget for all its variants, ten times the most compute of any."""
    families = grouped(groups, lambda group: group.first.family)
    if grids[0][0].flops or all(len({group.first.variant for group in own}) < 2 for own in families.values()):
        return ()
    most = {name: max(map(_most_compute, own)) for name, own in families.items()}
    return [
        [
            (each.but(family=[name], flops=TENFOLD * C if C else None), cell_keys)
            for each, cell_keys in grids
            for name, C in most.items()
        ]
    ]


def _most_compute(group: Group) -> float:
    return max(float(6 * run.non_embedding_params * (run.training_tokens or 0)) for run in group.runs)


PAGE: Final = OnPage(facts=facts, opens=says_what_to_train, grids=at_one_budget)
