"""What is found of one group, or of the orders of several trainings: rows of many kinds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rbpx.runs.fits import alike
from rbpx.runs.group import Group, Run
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class Found:
    """What is found of the tokens of a group, or of the orders in which several trainings learn them.

    Attributes:
        about: the group, or the text.
        group: the runs; of orders those of one training.
        runs: one for each point; of orders none.
        rows: all that is known, each with its kind.
    """

    about: str
    group: Group
    runs: Sequence[Run]
    rows: Sequence[Record]

    @classmethod
    def of_rows(
        cls, about: str, group: Group, rows: Iterable[Record], names: Mapping[str, Any], runs: Sequence[Run] = ()
    ) -> "Found":
        """Of rows that begin with their kind, to which names are added of what they are about."""
        axis = {"axis": group.axis.value}
        return cls(about, group, runs, alike([{"kind": row["kind"], **names, **axis, **row} for row in rows]))

    def of(self, *kinds: str, **values: Any) -> list[Record]:
        """The rows of some kinds with these values."""
        wanted = values.items()
        return [row for row in self.rows if row["kind"] in kinds and all(row[name] == at for name, at in wanted)]
