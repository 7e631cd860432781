"""Selection of runs by a request, in groups that may enter one fit; texts are never pooled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb

from rbpx.config.dataset import UNNAMED
from rbpx.config.model import ModelConfig
from rbpx.config.protocol import ProtocolConfig
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.store.queries import ask
from rbpx.ties import Ties, rule_of

ALIKE = (
    *(
        "source",
        "family",
        "dataset",
        "text_hash",
        "protocol",
        "window",
        "stride",
        "padding",
        "bos",
        "dtype",
        "revision",
    ),
)
MEASURED = "measured"


@dataclass(frozen=True)
class Run:
    """One size of a family on one text; what is unknown of an imported run is None.

    Attributes:
        run_ids: one for a measured run; an imported size may come from several files.
        observed: {(k, n): p} of an imported run, shares; empty for a measured one, which is counted.
        training_seed: tells it from other trainings of its size.
    """

    run_ids: tuple[str, ...]
    source: str
    family: str
    size: str
    dataset: str
    text_hash: str | None
    protocol: str | None
    window: int | None
    stride: int | None
    padding: str | None
    bos: str | None
    dtype: str | None
    revision: str | None
    non_embedding_params: int
    vocab_size: int | None
    n_documents: int | None
    n_skipped: int | None
    n_tokens: int | None
    cross_entropy_nats: float | None
    observed: dict[tuple[int, int], float] = field(default_factory=dict)
    training_seed: int | None = None

    @property
    def training(self) -> tuple[int, int | None]:
        """S and the seed: what a model is known by where it was measured in several ways, or on several texts."""
        return self.non_embedding_params, self.training_seed

    @property
    def reading(self) -> str | None:
        """How documents were read, where not as in the paper: the protocol, or its window where another."""
        if self.stride is not None:
            return f"{self.protocol} {self.window}/{self.stride}"
        if self.protocol not in (None, "paper"):
            return self.protocol
        return None if self.window in (None, ProtocolConfig.window) else f"window {self.window}"

    @property
    def run_id(self) -> str:
        """The id of a measured run."""
        (run_id,) = self.run_ids
        return run_id


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that may enter one fit, in order of S: alike in source, text, protocol, dtype and revision.

    There is one a size, or several that differ in their training_seed: replicates.
    """

    runs: tuple[Run, ...]
    ties: Ties

    @property
    def first(self) -> Run:
        """A run that names what all have in common."""
        return self.runs[0]

    @property
    def is_measured(self) -> bool:
        """Whether there are tokens to count, and documents to resample."""
        return self.first.source == MEASURED

    @property
    def n_documents(self) -> int:
        """Documents that were drawn, those without a token included; 0 where none are known."""
        return (self.first.n_documents or 0) + (self.first.n_skipped or 0)

    @property
    def n_sizes(self) -> int:
        """How many different S there are; replicates are of one size."""
        return len({run.non_embedding_params for run in self.runs})

    @property
    def run_ids(self) -> list[str]:
        """All runs, sorted."""
        return sorted(run_id for run in self.runs for run_id in run.run_ids)

    @property
    def title(self) -> str:
        """The name of the group in tables and headings."""
        return self._titled(f"{self.first.family} on {self.first.dataset}")

    @property
    def title_of_family(self) -> str:
        """The same without the text, for what stands over several texts."""
        return self._titled(self.first.family)

    def _titled(self, what: str) -> str:
        first = self.first
        choices = [first.reading, first.dtype if first.dtype != "float32" else None]
        choices += [f"revision {first.revision}" if first.revision else None]
        choices += [f"bos {first.bos}" if first.bos not in (None, "tokenizer") else None]
        choices += ["padding masked" if first.padding == "masked" else None]
        named = ", ".join([what, *(choice for choice in choices if choice)])
        return named if self.is_measured else f"{named} ({first.source})"

    def names(self) -> dict[str, Any]:
        """What all runs have in common, by column."""
        return {name: getattr(self.first, name) for name in ALIKE} | {"ties": self.ties.value}


def select(
    connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None = None
) -> list[Group]:
    """The groups that a request selects: those of the grid's cells, or all in the store that fit its choices.

    Raises:
        RbpxError: the request names a model that is not a family, or two runs of a group have the same S and are not
            known to be replicates.
    """
    if cell_keys is not None:
        choices: dict[str, list[str] | None] = dict.fromkeys(_NARROWS)
        runs = _measured(connection, choices, list(cell_keys))
    else:
        runs = _narrowed(connection, _choices(request), request.ties)
        if not runs and request.dataset is not None and request.dataset.has_file_name:
            runs = _narrowed(connection, _choices(request) | {"datasets": [UNNAMED]}, request.ties)
    return [_checked(Group(tuple(members), request.ties or rule_of(members[0].protocol))) for members in _grouped(runs)]


_NARROWS = ("sources", "families", "sizes", "datasets", "protocols", "revisions")


def _choices(request: Request) -> dict[str, list[str] | None]:
    model, dataset, protocol = request.model, request.dataset, request.protocol
    families = request.families()
    if model is not None and not (model.family is None and model.id is None and model.revision is not None):
        families = [*(families or []), family_name(request)]
    return {
        "sources": None if request.source is None else [request.source],
        "families": families,
        "sizes": request.sizes(),
        "datasets": None if dataset is None else [dataset.name],
        "protocols": None if protocol is None else [protocol.name],
        "revisions": None if model is None else _revisions(model),
    }


def _revisions(model: ModelConfig) -> list[str] | None:
    """The labels of the revisions that are asked for; None for all, and where models without a label are among them."""
    if not model.lists_checkpoints:
        return None if model.revision is None else [model.revision]
    labels = {checkpoint.revision for of_size in model.chosen_checkpoints().values() for checkpoint in of_size}
    named = sorted(label for label in labels if label is not None)
    return named if len(named) == len(labels) else None


def _narrowed(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    """Measured and imported runs that fit the choices."""
    sources = choices["sources"]
    runs = _measured(connection, choices, None) if sources is None or MEASURED in sources else []
    return runs + _imported(connection, choices, ties)


def _measured(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], cell_keys: list[str] | None
) -> list[Run]:
    narrowed = {name: value for name, value in choices.items() if name != "sources"}
    rows = ask(connection, "runs", **narrowed, cell_keys=cell_keys).to_pylist()
    return [Run(run_ids=(row.pop("run_id"),), **_without(row, "cell_key")) for row in rows]


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _imported(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    rows = ask(connection, "imported", **choices, ties=None if ties is None else ties.value).to_pylist()

    def model(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row.get(name)) for name in (*ALIKE, "non_embedding_params", "training_seed", "size"))

    runs = []
    for _, of_model in groupby(rows, key=model):
        members = list(of_model)
        first = members[0]
        entropies = {row["cross_entropy_nats"] for row in members} - {None}
        counts = {row["n_tokens"] for row in members if row["n"] == 1} - {None}
        runs.append(
            Run(
                run_ids=tuple(sorted({row["run_id"] for row in members})),
                **{name: first.get(name) for name in (*ALIKE, "size", "non_embedding_params", "training_seed")},
                vocab_size=None,
                n_documents=None,
                n_skipped=None,
                n_tokens=counts.pop() if len(counts) == 1 else None,
                cross_entropy_nats=entropies.pop() if len(entropies) == 1 else None,
                observed={(row["k"], row["n"]): row["rbp"] for row in members},
            )
        )
    return runs


def _grouped(runs: Iterable[Run]) -> list[list[Run]]:
    def alike(run: Run) -> tuple[str, ...]:
        return tuple(str(getattr(run, name)) for name in ALIKE)

    ordered = sorted(runs, key=lambda r: (alike(r), r.non_embedding_params, r.training_seed or 0, r.size))
    return [list(members) for _, members in groupby(ordered, key=alike)]


def _checked(group: Group) -> Group:
    for S, members in groupby(group.runs, key=lambda run: run.non_embedding_params):
        of_size = list(members)
        seeds = [run.training_seed for run in of_size]
        if len(seeds) > 1 and (None in seeds or len(set(seeds)) < len(seeds)):
            first, second = (run.size for run in of_size[:2])
            raise RbpxError(
                f"family {group.first.family} has two models with S = {S:,} on {group.first.dataset}, {first} and "
                f"{second}; if they are trainings of one size, give each a training_seed (model.seed='[0,1,...]', or "
                "in the family's file; nothing is measured anew), else choose one of them with size='[...]'"
            )
    return group


def family_name(request: Request) -> str:
    """The family that a request names.

    Raises:
        RbpxError: it names a model, not a family.
    """
    model = request.model
    if model is None or model.family is None:
        raise RbpxError("model=hub does not name a family of the store; name it with model.family=NAME")
    return model.family
