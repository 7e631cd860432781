"""Shows the laws of all groups side by side, and the runs that the numbers come from."""

from collections.abc import Mapping, Sequence
from typing import Final

from rbpx.display.table import Column, Table, table_of
from rbpx.display.vocabulary import amount, whole
from rbpx.questions.question import OfAll
from rbpx.questions.result import Result
from rbpx.runs.group import titles_of
from rbpx.runs.run import Run
from rbpx.store.store import Record


def glance(answers: Mapping[str, Sequence[Result]], beside: Mapping[str, OfAll]) -> Table:
    """A table of all groups of the first question, with what each question says of them."""
    columns, first = [Column("models and text", "group"), Column("points", "n_sizes", whole)], next(iter(beside), None)
    groups = [] if first is None else [each.groups[0] for each in answers[first]]
    rows: list[Record] = [
        {"group": title, "n_sizes": len(group.runs)} for title, group in zip(titles_of(groups), groups, strict=True)
    ]
    for name, of in beside.items():
        columns += of.columns
        keys = (each.groups[0].key for each in answers[name])
        known = dict(zip(keys, of.cells, strict=False))
        cells = of.cells if name == first else [known.get(group.key, {}) for group in groups]
        rows = [row | own for row, own in zip(rows, cells, strict=True)]
    return Table("glance", tuple(columns)).of("All laws at a glance", rows)


RUNS: Final = table_of(
    "runs", ("run", "run_id"),
    *((name, name) for name in ("family", "variant", "model", "size", "revision")),
    ("S", "non_embedding_params", whole), ("D", "training_tokens", amount), ("text", "dataset"),
    ("of hash", "text_hash"),
    *((name, name) for name in ("protocol", "dtype", "source")),
    ("documents", "n_documents", whole), ("tokens", "n_tokens", whole), ("CE, nats", "cross_entropy_nats", ".4f"),
    first="run_id family size non_embedding_params dataset source",
)  # fmt: skip


def runs_sheet(runs: Sequence[Run]) -> Table:
    """A table of the runs that the numbers come from."""
    note = "python -m rbpx show RUN prints all that is known about one."
    rows = [vars(run) | {"run_id": " ".join(run.run_ids), "size": run.label} for run in runs]
    return RUNS.of("Runs", rows, note=note).without_empty()
