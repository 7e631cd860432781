"""Runs of a store in, the laws of each family on each dataset side by side out; what was fitted lands in the store."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from rbpx.config import Request
from rbpx.content import digest
from rbpx.errors import RbpxError
from rbpx.evidence import Curves, Evidence, weigh
from rbpx.laws import LAWS
from rbpx.laws.power import PowerLawFit, fit_power_law, fit_signed_power_law
from rbpx.queries import ask
from rbpx.resample import document_weights
from rbpx.schema import FITS
from rbpx.status import Status
from rbpx.store import Record, Store, now
from rbpx.ties import Ties

METHOD = "ols"
_GROUP = ("source", "family", "dataset", "text_hash", "protocol", "window", "dtype", "revision")


@dataclass(frozen=True)
class Run:
    """One measured size, as query `runs` returns it."""

    cell_key: str
    run_id: str
    source: str
    family: str
    size: str
    dataset: str
    text_hash: str
    protocol: str
    window: int
    dtype: str
    revision: str | None
    non_embedding_params: int
    vocab_size: int
    n_documents: int
    n_skipped: int
    n_tokens: int
    cross_entropy_nats: float


@dataclass(frozen=True)
class Law:
    """One fitted law of a group; `k` is None where the law has none."""

    law: str
    k: int | None
    fit: PowerLawFit


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of one family on one dataset, and what each run says; runs in order of S."""

    runs: tuple[Run, ...]
    evidence: tuple[Evidence, ...]
    laws: tuple[Law, ...]
    k_grid: tuple[int, ...]
    ties: Ties
    resamples: int


def select_runs(connection: duckdb.DuckDBPyConnection, request: Request, cell_keys: Sequence[str] | None) -> list[Run]:
    """The runs that a request means: those of the grid's cells, or all in the store that fit its choices.

    Raises:
        RbpxError: the request names a model that is no family.
    """
    chosen: dict[str, list[str] | None] = dict.fromkeys(("families", "sizes", "datasets", "protocols", "revisions"))
    if cell_keys is None:
        model, dataset, protocol = request.model, request.dataset, request.protocol
        chosen["sizes"] = request.sizes()
        chosen["families"] = None if model is None else [family_name(request)]
        chosen["datasets"] = None if dataset is None else [dataset.name]
        chosen["protocols"] = None if protocol is None else [protocol.name]
        chosen["revisions"] = None if model is None or model.revision is None else [model.revision]
    table = ask(connection, "runs", **chosen, cell_keys=None if cell_keys is None else list(cell_keys))
    return [Run(**row) for row in table.to_pylist()]


def family_name(request: Request) -> str:
    """The family that a request names.

    Raises:
        RbpxError: it names a model, not a family.
    """
    model = request.model
    if model is None or model.family is None:
        raise RbpxError("model=hub stands for no family in the store; name it with model.family=NAME")
    return model.family


def groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that may enter one fit: alike in source, drawn text, protocol, dtype and revision; never pooled."""

    def alike(run: Run) -> tuple[str, ...]:
        return tuple(str(getattr(run, name)) for name in _GROUP)

    ordered = sorted(runs, key=lambda r: (alike(r), r.non_embedding_params, r.size))
    return [list(members) for _, members in groupby(ordered, key=alike)]


def fit_laws(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run], request: Request) -> Laws:
    """Fit every law to one group of runs, its documents resampled, the same ones for every size.

    Raises:
        RbpxError: two runs of the group have the same S, so that a law in S has no meaning.
    """
    k_grid = request.k_grid(min(run.vocab_size for run in runs))
    sizes = [run.non_embedding_params for run in runs]
    if len(set(sizes)) < len(sizes):
        twice = next(run for run in runs if sizes.count(run.non_embedding_params) > 1)
        raise RbpxError(
            f"family {twice.family} has two models with S = {twice.non_embedding_params:,} on {twice.dataset}; "
            "choose one of them with size='[...]'"
        )
    n_documents = runs[0].n_documents + runs[0].n_skipped
    weights_BD = document_weights(n_documents, request.resamples, request.seed)
    asked = [ask(connection, "document_ranks", run_id=run.run_id, ties=request.ties.value) for run in runs]
    with ThreadPoolExecutor() as pool:  # numpy works outside the interpreter's lock
        evidence = list(pool.map(lambda run, counts: weigh(counts, weights_BD, k_grid, run.vocab_size), runs, asked))
    chosen = request.chosen_laws()
    laws = [Law("rbp", k, _fit(sizes, evidence, "rbp", i)) for i, k in enumerate(k_grid) if "rbp" in chosen]
    laws += [Law(name, None, _fit(sizes, evidence, name)) for name in LAWS[1:] if name in chosen]
    return Laws(tuple(runs), tuple(evidence), tuple(laws), tuple(k_grid), request.ties, request.resamples)


def _fit(sizes: Sequence[int], evidence: Sequence[Evidence], law: str, k_index: int | None = None) -> PowerLawFit:
    def curve(curves: Curves) -> Any:
        value = getattr(curves, law)
        if k_index is None:
            return value
        with np.errstate(divide="ignore"):  # a share of 0 has no finite -ln; the fit says not_positive
            return -np.log(value[..., k_index])

    y_N = np.array([curve(e.measured) for e in evidence])
    y_BN = np.column_stack([curve(e.resampled) for e in evidence])
    if law.startswith("lognormal"):
        return _with_rank_status(fit_power_law(sizes, y_N, y_BN), evidence)
    fit = fit_signed_power_law if law in ("error_entropy", "self_alignment", "confidence") else fit_power_law
    return fit(sizes, y_N, y_BN)


def _with_rank_status(fit: PowerLawFit, evidence: Sequence[Evidence]) -> PowerLawFit:
    """A law of derived curves is in as much doubt as the worst rank model that it is derived from."""
    if fit.status is Status.too_few_sizes:
        return fit
    doubts = [e.paper.status for e in evidence if e.paper.status is not Status.ok]
    return replace(fit, status=doubts[0]) if doubts else fit


def fit_record(group: Laws, law: Law) -> Record:
    """A row of the relation `fits`."""
    first, run_ids = group.runs[0], [run.run_id for run in group.runs]
    known: Record = {
        **{name: getattr(first, name) for name in _GROUP},
        **asdict(law.fit),
        "fit_id": digest(
            [law.law, METHOD, group.ties.value, law.k, first.family, first.dataset, first.revision, sorted(run_ids)]
        ),
        "law": law.law,
        "k": law.k,
        "ties": group.ties.value,
        "method": METHOD,
        "params": law.fit.params | {"resamples": group.resamples, "sizes": [run.size for run in group.runs]},
        "run_ids": run_ids,
        "created_at": now(),
    }
    return {name: known.get(name) for name in FITS.names}


def rank_fit_records(run: Run, evidence: Evidence, ties: Ties) -> list[Record]:
    """Rows of the relation `rank_fits`; the published fit carries the curves derived from it, exact and approximate."""
    exact = (evidence.measured.lognormal_rbp1, evidence.measured.lognormal_cross_entropy)
    curves = {
        "neg_ln_rbp_1": _known(exact[0]),
        "cross_entropy_nats": _known(exact[1]),
        "neg_ln_rbp_1_approximated": None if evidence.approximated is None else evidence.approximated[0],
        "cross_entropy_nats_approximated": None if evidence.approximated is None else evidence.approximated[1],
    }
    paper, full = (
        {"run_id": run.run_id, "ties": ties.value, **asdict(fit), "created_at": now()}
        for fit in (evidence.paper, evidence.full)
    )
    return [paper | {"params": paper["params"] | curves}, full]


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def keep_laws(store: Store, group: Laws) -> list[Record]:
    """Write the fits and the rank distributions of a group, and return the fits; a refit replaces its own rows."""
    fits = [fit_record(group, law) for law in group.laws]
    for record in fits:
        store.write_record("fits", record["fit_id"], record)
    for run, evidence in zip(group.runs, group.evidence, strict=True):
        for record in rank_fit_records(run, evidence, group.ties):
            store.write_record("rank_fits", f"{run.run_id}-{group.ties.value}-{record['distribution']}", record)
    return fits
