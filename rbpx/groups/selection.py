"""Selection of runs by a request, in groups that may enter one fit; texts are never pooled."""

import logging
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb

from rbpx.config.dataset import UNNAMED
from rbpx.config.model import ModelConfig
from rbpx.config.protocol import ProtocolConfig
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.names import IMPORTED, Axis
from rbpx.status import Status
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
        "variant",
        "engine",
    ),
)
MEASURED = "measured"
_OF_TRAINING = (*("training_seed", "model", "training_tokens", "training_flops", "training_step", "unique_tokens"),)


@dataclass(frozen=True)
class Run:
    """One size of a family on one text; what is unknown of an imported run is None.

    Attributes:
        run_ids: one for a measured run; an imported size may come from several files.
        observed: {(k, n): p} of an imported run, shares; empty for a measured one, which is counted.
        imported: quantities beside RBP and cross-entropy, of `rbpx.laws.names.IMPORTED`.
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
    non_embedding_params: float
    vocab_size: int | None
    n_documents: int | None
    n_skipped: int | None
    n_tokens: int | None
    cross_entropy_nats: float | None
    observed: dict[tuple[int, int], float] = field(default_factory=dict)
    imported: dict[str, float] = field(default_factory=dict)
    training_seed: int | None = None
    model: str | None = None
    total_params: int | None = None
    training_tokens: int | None = None
    training_flops: float | None = None
    training_step: int | None = None
    unique_tokens: int | None = None
    variant: str | None = None
    engine: str | None = None
    axis: Axis = Axis.S

    @property
    def x(self) -> float | None:
        """Its place on the axis: S; D, or C / (6 S) where it is not known; C, or 6 S D; or steps."""
        S, D, C = self.non_embedding_params, self.training_tokens, self.training_flops
        if self.axis is Axis.D:
            return D if D is not None or C is None else C / (6 * S)
        if self.axis is Axis.C:
            return C if C is not None or D is None else 6.0 * S * D
        return self.training_step if self.axis is Axis.step else S

    @property
    def training(self) -> tuple[Any, ...]:
        """S, the seed and a checkpoint: what a model is known by in several measurements, or on several texts."""
        of_size = (self.non_embedding_params, self.training_seed)
        return of_size if self.axis is Axis.S else (*of_size, self.size, self.revision, self.training_step, self.x)

    @property
    def reading(self) -> str | None:
        """How documents were read, where not as in the paper: the protocol, or its window where another."""
        if self.stride is not None:
            return f"{self.protocol} {self.window}/{self.stride}"
        if self.protocol not in (None, "paper"):
            return self.protocol
        return None if self.window in (None, ProtocolConfig.window) else f"window {self.window}"

    def names(self) -> dict[str, Any]:
        """What tells the run from others of its group, by column."""
        return {name: getattr(self, name) for name in ("size", "non_embedding_params", "revision", *_OF_TRAINING)}

    @property
    def run_id(self) -> str:
        """The id of a measured run."""
        (run_id,) = self.run_ids
        return run_id


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that may enter one fit, in order of S: alike in source, text, protocol, dtype, revision and variant.

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
        """How many different S, or places on another axis, there are; replicates are of one size."""
        return len({run.x for run in self.runs})

    @property
    def axis(self) -> Axis:
        """What laws of these runs are in."""
        return self.runs[0].axis

    @property
    def fixed_size(self) -> str | None:
        """The one size of all runs of a law in something else; None where sizes differ."""
        return None

    @property
    def doubts(self) -> tuple[Status, ...]:
        """What is known to be wrong with the runs before anything is fitted."""
        return ()

    @property
    def notes(self) -> list[str]:
        """What was computed, left out or chosen to come to these runs, a line each."""
        return []

    @property
    def has_trainings(self) -> bool:
        """Whether models of one size were trained on different numbers of tokens: no law in S alone."""
        known = {(run.non_embedding_params, run.training_tokens, run.training_flops) for run in self.runs}
        return len(known) > len({run.non_embedding_params for run in self.runs})

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

    @property
    def title_of_text(self) -> str:
        """The same without the family, for what stands under several families."""
        return Group._titled(self, self.first.dataset)

    def _titled(self, what: str) -> str:
        first = self.first
        choices = [first.reading, first.dtype if first.dtype != "float32" else None]
        choices += [f"revision {first.revision}" if first.revision else None]
        choices += [f"bos {first.bos}" if first.bos not in (None, "tokenizer") else None]
        choices += ["padding masked" if first.padding == "masked" else None]
        choices += [f"variant {first.variant}" if first.variant else None]
        choices += [first.engine]
        named = ", ".join([what, *(choice for choice in choices if choice)])
        return named if self.is_measured else f"{named} ({first.source})"

    def names(self) -> dict[str, Any]:
        """What all runs have in common, by column; no other group of one question has the same."""
        return {name: getattr(self.first, name) for name in ALIKE} | {"ties": self.ties.value}

    @property
    def key(self) -> Hashable:
        """What the group is known by: results, rows and fits belong to it by nothing else."""
        return tuple(self.names().items())


def select(
    connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None = None
) -> list[Group]:
    """The groups that a request selects: those of the grid's cells, or all in the store that fit its choices.

    Raises:
        RbpxError: the request names a model that is not a family, or two runs of a group have the same S and are not
            known to be replicates.
    """
    groups = select_alike(connection, request, cell_keys)
    of_size = [group for group in groups if not group.has_trainings]
    if groups and not of_size:
        raise RbpxError(f"{_no_law_of_size(groups[0])}")
    for group in groups:
        if group.has_trainings and request.is_about(group.first.family):
            logging.getLogger(__name__).warning(_no_law_of_size(group))
    return [_checked(group) for group in of_size]


def select_alike(
    connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None = None
) -> list[Group]:
    """All runs that a request selects, in groups of what is alike, for questions that fit no law to a group."""
    runs = select_runs(connection, request, cell_keys)
    return [Group(tuple(members), request.ties or rule_of(members[0].protocol)) for members in _grouped(runs)]


def _no_law_of_size(group: Group) -> str:
    return (
        f"{group.title}: models of one size were trained on different numbers of tokens, and a law in S takes one run "
        f"a size; fit size and tokens together: python -m rbpx surface family={group.first.family}, or along the "
        f"tokens of each size: python -m rbpx fit axis=D family={group.first.family}"
    )


def select_runs(
    connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None = None
) -> list[Run]:
    """The runs that a request selects, whatever groups they are of: those of the grid's cells, or all that fit it.

    Raises:
        RbpxError: the request names a model that is not a family.
    """
    if cell_keys is not None:
        choices: dict[str, list[str] | None] = dict.fromkeys(_NARROWS)
        return _measured(connection, choices, list(cell_keys))
    runs = _narrowed(connection, _choices(request), request.ties)
    if not runs and request.dataset is not None and request.dataset.has_file_name:
        runs = _narrowed(connection, _choices(request) | {"datasets": [UNNAMED]}, request.ties)
    return runs


_NARROWS = ("sources", "families", "sizes", "datasets", "protocols", "revisions", "quantise")


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
        "quantise": None if model is None or model.quantise is None else [model.quantise.value],
    }


def _revisions(model: ModelConfig) -> list[str] | None:
    """The labels of the revisions that are asked for; None for all, and where models without a label are among them."""
    labels = [] if model.revision is None else model.revisions()
    named = [label for label in labels if label is not None]
    return named if named and len(named) == len(labels) else None


def _narrowed(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    """Measured and imported runs that fit the choices."""
    sources = choices["sources"]
    runs = _measured(connection, choices, None) if sources is None or MEASURED in sources else []
    if choices["quantise"] is not None:
        return [run for run in runs if (run.dtype or "").partition("-")[2] in choices["quantise"]]
    return runs + _imported(connection, choices, ties)


def _measured(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], cell_keys: list[str] | None
) -> list[Run]:
    narrowed = {name: value for name, value in choices.items() if name not in ("sources", "quantise")}
    rows = ask(connection, "runs", **narrowed, cell_keys=cell_keys).to_pylist()
    return [Run(run_ids=(row.pop("run_id"),), **_without(row, "cell_key")) for row in rows]


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _imported(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    choices = {name: value for name, value in choices.items() if name != "quantise"}
    rows = ask(connection, "imported", **choices, ties=None if ties is None else ties.value).to_pylist()

    def model(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row.get(name)) for name in (*ALIKE, "non_embedding_params", "size", *_OF_TRAINING))

    runs = []
    for _, of_model in groupby(rows, key=model):
        members = list(of_model)
        first = members[0] | {"non_embedding_params": _whole(members[0]["non_embedding_params"])}
        counts = {row["n_tokens"] for row in members if row["n"] == 1} - {None}
        runs.append(
            Run(
                run_ids=tuple(sorted({row["run_id"] for row in members})),
                **{name: first.get(name) for name in (*ALIKE, "size", "non_embedding_params", *_OF_TRAINING)},
                vocab_size=None,
                n_documents=None,
                n_skipped=None,
                n_tokens=counts.pop() if len(counts) == 1 else None,
                cross_entropy_nats=_one(row["cross_entropy_nats"] for row in members),
                observed={(row["k"], row["n"]): row["rbp"] for row in members if row["rbp"] is not None},
                imported={
                    name: value for name in IMPORTED if (value := _one(row[name] for row in members)) is not None
                },
            )
        )
    return runs


def _whole(S: float) -> float:
    """A size that is a whole number as one, so that it is written as that."""
    return int(S) if S == int(S) else S


def _one(values: Iterable[float | None]) -> float | None:
    """The value that all rows agree on; None where none has it, or they differ."""
    known = set(values) - {None}
    return known.pop() if len(known) == 1 else None


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
