"""Resolves the two sides of a comparison, such as ladder/25k@step1000:bfloat16 or a run_id, to runs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rbpx.errors import RbpxError
from rbpx.runs.group import Group
from rbpx.runs.run import Run, grouped
from rbpx.spelling import typed

READ_ALIKE = ("dataset", "text_hash", "protocol", "window", "stride")


@dataclass(frozen=True)
class Side:
    """One of the two compared models: `key` is `a` or `b`, `name` is as typed."""

    key: str
    name: str

    @classmethod
    def read(cls, key: str, name: Any) -> "Side":
        """Parse the name of a side; raises RbpxError where it is neither a model nor a run_id."""
        if not isinstance(name, str) or not ("/" in name or re.fullmatch(r"[0-9a-f]{16}", name)):
            raise RbpxError(
                f"{key}={name or ''} names no model; give FAMILY/SIZE, with @REVISION and :DTYPE where needed, or a "
                f"run_id, as in {typed(a='ladder/25k', b='ladder/200k')}"
            )
        return cls(key, name)

    def means(self, run: Run) -> bool:
        """Whether a run matches this side: its id, or every part of the name that was typed."""
        dtypes = ["", f":{run.dtype}", f":{(run.dtype or '').partition('-')[2]}"]
        revisions = ["", f"@{run.revision}"] if run.revision else [""]
        names = [f"{run.family}/{run.size}{revision}{dtype}" for revision in revisions for dtype in dtypes]
        return self.name in (*names, _full(run), *run.run_ids)

    def one_of(self, runs: Iterable[Run]) -> Run | None:
        """The run of this side on one text, or None; raises RbpxError where several match."""
        meant = [run for run in runs if self.means(run)]
        if len(meant) > 1:
            named = ", ".join(f"{run.run_id} ({_full(run)})" for run in meant)
            raise RbpxError(
                f"{self.key}={self.name} names {len(meant)} runs on {meant[0].dataset}: {named}; name one of them by "
                "its run_id, or by @REVISION and :DTYPE"
            )
        return meant[0] if meant else None


def runs_by_text(groups: Sequence[Group]) -> list[list[tuple[Group, Run]]]:
    """The runs on each text and protocol, of any family, revision and dtype, each with its group."""
    members = [(group, run) for group in groups for run in group.runs]
    return list(grouped(members, lambda of: tuple(getattr(of[1], name) for name in READ_ALIKE)).values())


def _full(run: Run) -> str:
    seed = f" seed {run.training_seed}" if run.training_seed is not None else ""
    return f"{run.family}/{run.size}{f'@{run.revision}' if run.revision else ''}:{run.dtype}{seed}"


def name_of(run: Run) -> str:
    """The name in a heading; revision and dtype appear only where they are not the defaults."""
    dtype = f":{run.dtype}" if run.dtype != "float32" else ""
    return f"{run.family}/{run.size}{f'@{run.revision}' if run.revision else ''}{dtype}"
