"""Writes the sentence of learning."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.vocabulary import spoken
from rbpx.laws.names import Axis
from rbpx.questions.learning.tables import CARRYING, LearningRows
from rbpx.status import Status

_MOST: Final = 3  # texts in the answer


def sentence(of_family: Sequence[LearningRows], least: int) -> str:
    """How many ids of each text improve, and what share of the fall the first have."""
    parts = [_improvements(found) for found in of_family]
    left = [f"and {len(parts) - _MOST} more"] if len(parts) > _MOST else []
    said = "; ".join([*parts[:_MOST], *left])
    return f"{said[0].upper()}{said[1:]}. Counted are token ids scored {least} times or more."


def _improvements(found: LearningRows) -> str:
    (group,), tokens, text = found.of("group"), found.of("token"), found.group.title_of_text
    if not found.of("tokens"):
        return f"on {text} no token id can be followed: {Status(group['status']).remedy.rstrip('.')}"
    better, worse = found.of("token", trend="improves"), found.of("token", trend="worsens")
    made_up = "; the text as a whole is not predicted better, so nothing has a share"
    if all(row["share"] is not None for row in (*tokens, *found.of("rarer"))):
        carried = sum(row["share"] for row in better[:CARRYING])
        made_up = f"; the {len(better[:CARRYING])} that improve most make {carried:.0%} of the fall of cross-entropy"
    first, last = (
        run.label if found.group.axis is Axis.S else spoken(run.x) for run in (found.runs[0], found.runs[-1])
    )
    return (
        f"on {text} {len(better):,} of {len(tokens):,} token ids are predicted better by {last} than by {first}, "
        f"{len(worse):,} worse{made_up}"
    )
