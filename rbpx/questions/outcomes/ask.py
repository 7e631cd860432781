"""Answers `outcomes`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import estimate_in, with_params
from rbpx.display.section import interval_of
from rbpx.display.table import SIZE, STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import number, short, whole
from rbpx.errors import number_of
from rbpx.laws.counts.fit import Correction
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.questions.outcomes import OutcomesKeys
from rbpx.questions.outcomes.counts import counts_of, recover
from rbpx.questions.outcomes.learners import learners
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.schema import FITS
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (1, 2, 5, 10, 20, 50)
_ASSUMED: Final = {Correction.none: "independent", Correction.measured: "r measured", Correction.free: "r fitted"}


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: OutcomesKeys) -> Result:
    """Cuts documents into sequences, fits laws to their passes at each k, and learns hits."""
    k_grid, lengths = request.k.grid(group.vocab_size, DEFAULT_K), request.n.listed(DEFAULT_N)
    sizes = {run.non_embedding_params: run.size for run in group.runs}
    rows, of_tokens = list[Record](), list[Record]()
    for k, cells, tokens in counts_of(connection, group, k_grid, lengths, request):
        rows += recover(k, sizes, cells, group, tokens)
        of_tokens.append({"kind": "tokens", "k": k, "status": tokens.law.status, **by_name(alpha=tokens.law.alpha)})
    smaller, run = group.runs[-2:]
    about = {"kind": "learner", **group.names(), "size": run.size, "smaller": smaller.size}
    about["run_ids"] = [run.run_id, smaller.run_id]
    learned = [about | row for row in learners(connection, group, k_grid, lengths, request.seed)]
    title = f"Hits of {run.label}, learned from outcomes, with features from {smaller.label}"
    table = LEARNERS.of(title, map(_at_k, learned), group.title, brief=False)
    fits = [{name: row[name] for name in FITS.names} for row in rows if row["kind"] == "law"]
    says = [*_sentences(rows, {row["k"]: row["alpha"] for row in of_tokens})]
    tables = [*_tables(rows, group.title, of_tokens), table]
    return Result([group], [*rows, *learned], tables, says, fits=fits, plain=[*map(with_params, rows), *learned])


def _hits(row: Record) -> str:
    if "correction" not in row:
        return "tokens themselves"
    return f"{'all N' if row['n'] is None else 'N = ' + str(row['n'])}, {_ASSUMED[row['correction']]}"


def _at_k(row: Record) -> Record:
    return row | {"k": None if row["k"] is None else f"{row['k']:,}"}


def _law(row: Record) -> Record:
    of = with_params(row)
    bias = Estimate(**(of.get("bias_against_tokens") or {}))
    return _at_k(of) | {"correction": _hits(row)} | by_name(bias=bias)


def _shares(row: Record) -> Record:
    return _at_k(row) | {"passed": row["n_passed"] / max(row["n_sequences"], 1)}


_K: Final = Column("k", "k")
LAWS: Final = table_of(
    "laws", _K, ("hits assumed", "correction"), *interval("α", "alpha"),
    *interval("bias", "bias", "+.4f", "of α against the law of the tokens"),
    *interval("r", "r"), STATUS,
    first="k correction alpha status, bias r, bias_lo, r_lo",
)  # fmt: skip
SHARES: Final = table_of(
    "shares", _K, SIZE, ("N", "n", short), ("sequences", "n_sequences", whole),
    ("passed", "passed", short, "share of them"),
    ("r", "correlation", short, "of two hits of a sequence, on the tokens"),
    ("tokens", "rbp_tokens", ".4f", "RBP_k as counted"),
    *interval("RBP_k", "rbp", number, "by the law of the outcomes of that N, independent"),
    first="k size n passed rbp, n_sequences, rbp_tokens",
)  # fmt: skip
LEARNERS: Final = table_of(
    "learners", _K, ("N", "n", whole), *interval("AUC", "auc", ".3f"),
    *interval("loss", "log_loss_nats", number, "log loss, nats"),
    ("est.", "told_nats", ".4f", "loss, estimated from outcomes"),
    *interval("excess", "excess", ".3f", "mean predicted chance minus RBP_k, the share of hits"),
    ("RBP_k", "rbp", ".3f"), STATUS,
    first="k n auc log_loss_nats status, excess, rbp, told_nats, log_loss_nats_lo, excess_lo",
)  # fmt: skip


def _tables(rows: Sequence[Record], about: str, of_tokens: Sequence[Record]) -> Iterator[Table]:
    laws = [row for row in rows if row["kind"] == "law"]
    by_k = [row for k in dict.fromkeys(row["k"] for row in laws) for row in (*of_tokens, *laws) if row["k"] == k]
    lengths = {row["n"] for row in laws}
    title = "−ln RBP_k = C · S^−α from the outcomes"
    yield LAWS.of(title, map(_law, by_k), about, brief=[_is_of_all(row, lengths) for row in by_k])
    rbp = {
        (row["k"], row["n"], row["size"]): row for row in rows if row["kind"] == "rbp" and row["correction"] == "none"
    }
    cells = [rbp.get((row["k"], row["n"], row["size"]), {}) | row for row in rows if row["kind"] == "outcomes"]
    yield SHARES.of("Sequences of N tokens", map(_shares, cells), about, brief=False)


def _is_of_all(row: Record, lengths: Collection[int | None]) -> bool:
    """Whether a law is of the tokens, of all lengths or of the only one, and needs no tokens."""
    return row.get("correction") != Correction.measured and (row.get("n") is None or len(lengths) == 1)


def _sentences(rows: Sequence[Record], alpha_of_tokens: Mapping[int | None, float | None]) -> Iterator[str]:
    N = sorted({row["n"] for row in rows if row["kind"] == "outcomes"})
    laws = [row for row in rows if row["kind"] == "law" and _is_of_all(row, N)]
    of = f"sequences of {N[0]:,} to {N[-1]:,} tokens" if len(N) > 1 else f"sequences of {number_of(N[0], 'token')}"
    for k in dict.fromkeys(row["k"] for row in laws):
        of_k = [row for row in laws if row["k"] == k]
        law = min(of_k, key=lambda row: (row["alpha"] is None, row["status"] != Status.ok, row["correction"] == "none"))
        quantity, status, own = f"−ln RBP_{'k' if k is None else k}", Status(law["status"]), alpha_of_tokens.get(k)
        if law["alpha"] is None:
            yield f"No law of {quantity} follows from {of}, right or wrong as a whole. {status.remedy}"
            continue
        hits = "independent" if law["correction"] == "none" else f"correlated by {law['params']['r']:.3f}"
        says = f"From whether {of} are right as a whole, α of {quantity} is {interval_of(estimate_in(law, 'alpha'), 4)}"
        says += "" if own is None else f"; from the tokens one by one it is {number(own)}"
        says += f". Hits within a sequence are taken as {hits}"
        yield says + ("." if status is Status.ok else f"; {status.finding}.")


QUESTION = of_each(answer, select=partial(select, by=By.size))
