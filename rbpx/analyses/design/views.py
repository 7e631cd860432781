"""Tables of the design of trainings: what it can tell, and the runs to train next."""

from collections.abc import Callable, Iterator
from typing import Final

from rbpx.analyses.design.analysis import Designed, Designs, analyse, keep
from rbpx.analyses.question import Question, each, one_by_one
from rbpx.display.view import Table, View, decimal, ends, magnitude, share, state, text, whole, written
from rbpx.display.vocabulary import rough, short
from rbpx.laws.surface.design import Design, NextRun

_SD: Final = (
    "standard deviation of ln D about its line on ln S, or of ln S about its line on ln D where that is less; "
    "below 0.1 one follows the other"
)
_CONDITION: Final = "condition number of the derivatives of ln y by the constants, each scaled to length 1"
_SD_AFTER: Final = "standard deviation of the target, from the information of the fit, linearised"


def _how(of: Callable[[Design], float | None]) -> Callable[[Designed], float | None]:
    return lambda row: None if row.fit.design is None else of(row.fit.design)


DESIGNS: Final = View[Designed](
    "design",
    text("law", "law", lambda row: row.trained.title),
    text("form", "form", lambda row: row.fit.form),
    whole("points", "n_points", lambda row: row.fit.n_points, spare=1),
    whole("trainings", "n_runs", lambda row: row.fit.n_runs, spare=4),
    whole("sizes", "n_S", _how(lambda design: design.n_S), spare=2),
    whole("numbers of D", "n_D", _how(lambda design: design.n_D), spare=5),
    ends("least_D_per_S greatest_D_per_S", lambda row: row.ratios, short, "D/S"),
    written("sd", "sd", _how(lambda design: design.sd), rough, _SD),
    magnitude("condition", "condition", _how(lambda design: design.condition), _CONDITION, spare=3),
    state(lambda row: row.status),
)  # fmt: skip
NEXT: Final = View[tuple[int, NextRun]](
    "next",
    whole("run", "rank", lambda row: row[0], "a run that is named twice is to be trained with two seeds"),
    magnitude("S", "S", lambda row: row[1].S),
    magnitude("D", "D", lambda row: row[1].D),
    magnitude("C = 6 S D", "C", lambda row: row[1].C),
    decimal("sd before", "sd_before", lambda row: row[1].sd_before),
    decimal("sd after", "sd_after", lambda row: row[1].sd_after, means=_SD_AFTER),
    share("narrower by", "narrowed", lambda row: row[1].narrowed),
    written("per 1e18 FLOPs", "per_flop", lambda row: row[1].per_flop * 1e18, rough, spare=1),
)  # fmt: skip


@one_by_one
def tables(of: Designs) -> Iterator[Table]:
    """The designs of a group, then for each law and form the runs to train next."""
    if of.of:
        yield DESIGNS.table("Design of the trainings", of.of, of.group.title)
    for n, at in enumerate(of.of, 1):
        title = f"To narrow {at.target} of {at.trained.title}, {at.fit.form}"
        if at.chosen:
            yield View(f"{NEXT.name}-{n}", NEXT.columns).table(title, enumerate(at.chosen, 1), of.group.title)


QUESTION = Question(each(analyse), keep, tables)
