"""Units across tokenizers (verb units): bits per byte and ranks relative to V of each run of a group.

No law is fitted: bits per byte are nats per token times a constant of text and tokenizer, so that their law in S has
the exponent of cross-entropy.
"""

from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.analyses.units.conversion import Units, express
from rbpx.config.request import Request
from rbpx.groups.group import Group, Run
from rbpx.groups.token_ranks import document_ranks
from rbpx.laws.interval import Estimate
from rbpx.store.queries import ask
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class RunUnits:
    """What one run says, in every unit."""

    run: Run
    units: Units


@dataclass(frozen=True, eq=False)
class GroupUnits:
    """The runs of one group, in order of S."""

    group: Group
    runs: tuple[RunUnits, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> GroupUnits:
    """Express each run of a measured group, its documents resampled, the same ones for every size."""
    weights_BD = group.weights(request)
    runs = []
    for run in group.runs:
        counts = document_ranks(connection, run.run_id, group.ties)
        covered = ask(connection, "document_bytes", run_id=run.run_id)
        bytes_D = np.full(group.n_documents, np.nan)
        bytes_D[covered["doc_id"].to_numpy()] = covered["n_bytes_scored"].to_numpy(zero_copy_only=False)
        runs.append(RunUnits(run, express(counts, bytes_D, weights_BD, run.vocab_size or 0, group.n_resampled)))
    return GroupUnits(group, tuple(runs))


def keep(store: Store, units: GroupUnits) -> list[Record]:
    """A row a run, for programs; no law is stored."""
    rows = []
    for each in units.runs:
        run = each.run
        row: Record = {**units.group.names(), **run.names(), "run_id": run.run_id, "vocab_size": run.vocab_size}
        for name, estimate in estimates(each.units).items():
            row |= {name: estimate.value, f"{name}_lo": estimate.lo, f"{name}_hi": estimate.hi}
        rows.append(row)
    return rows


def estimates(units: Units) -> dict[str, Estimate]:
    """Each estimate under the name of its columns."""
    of = {"nats_per_token": units.nats_per_token, "bits_per_byte": units.bits_per_byte}
    of |= {"tokens_per_byte": units.tokens_per_byte}
    of |= {f"rank_{percent}": rank for percent, rank in units.rank.items()}
    of |= {f"relative_rank_{percent}": rank for percent, rank in units.relative_rank.items()}
    return of | {f"rbp_at_{share:g}_V": rbp for share, rbp in units.rbp.items()}
