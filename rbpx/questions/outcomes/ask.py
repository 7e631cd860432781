"""Answers what outcomes say of tokens: what passed, the laws and RBP_k recovered from it, and the hits learned."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Column, Table, View, decimal, ends, magnitude, state, text, whole, with_ends
from rbpx.display.vocabulary import decimals, signed
from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.laws.counts.fit import Correction
from rbpx.laws.intervals.estimate import NO_ESTIMATE, by_name
from rbpx.laws.power.law import PowerLaw
from rbpx.questions.outcomes.counts import counts_of, counts_of_trials
from rbpx.questions.outcomes.learners import FOLDS, learners
from rbpx.questions.outcomes.recovery import recover
from rbpx.questions.outcomes.trials import read_trials
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.ways import in_size
from rbpx.store.schema import FITS
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (1, 2, 5, 10, 20, 50)
_ASSUMED: Final = {Correction.none: "independent", Correction.measured: "r measured", Correction.free: "r fitted"}
_LONGEST_NAME: Final = 16
_NOTE: Final = (
    "A sequence of N tokens passes if all are hits, ranks of at most k. Independent: pass ~ Bernoulli(exp(−C·N·S^−α)), "
    "by maximum likelihood; else the number of hits is beta-binomial, r the correlation of two hits of a sequence. "
    "There is no interval where the likelihood has no maximum in more than 5 % of the resamples of the documents."
)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Cut the documents of a measured group into sequences, fit laws to those that pass at each k, and learn hits."""
    k_grid, lengths = request.k.grid(group.vocab_size, DEFAULT_K), request.n.listed(DEFAULT_N)
    rows, of_tokens = list[Record](), dict[int | None, PowerLaw]()
    for k, counts, tokens in counts_of(connection, group, k_grid, lengths, request):
        rows += recover(k, counts, group, tokens)
        of_tokens[k] = tokens.law
    smaller, run = group.runs[-2:]
    about = {"kind": "learner", **group.names(), "size": run.size, "smaller": smaller.size}
    about["run_ids"] = [run.run_id, smaller.run_id]
    learned = [about | row for row in learners(connection, group, k_grid, lengths, request.seed)]
    note = (
        f"Logistic models of P(hit), learned from {FOLDS - 1} of {FOLDS} parts of the documents and judged on the "
        "tokens of the remaining part; intervals over documents."
    )
    title, unranked = f"Hits of {run.size}, with features from {smaller.size}", by_name(auc=NO_ESTIMATE)
    shown = [row | unranked if row["learner"] == "constant" else row for row in learned]
    table = LEARNERS.table(title, shown, group.title, note=note)
    fits = [{name: row[name] for name in FITS.names} for row in rows if row["kind"] == "law"]
    return Result([group], [*rows, *learned], [*_tables(rows, group.title, of_tokens), table], fits=fits)


def of_file(path: Path, request: Request) -> Result:
    """Fit the rows of a file, separately for each k; groups, where the file names them, are resampled whole.

    Raises:
        RbpxError: the file or a row is invalid.
    """
    trials = read_trials(read_table(path))
    wanted = None if not request.k.by_number else set(request.k.listed())
    k_grid = sorted({one.k for one in trials}, key=lambda k: k or 0)
    chosen = [k for k in k_grid if wanted is None or k in wanted]
    lengths = sorted({one.N for one in trials})
    has_length = bool(set(lengths) & set(request.n.listed(lengths)))
    for is_there, name, asked, values in ((chosen, "k", request.k, k_grid), (has_length, "n", request.n, lengths)):
        if not is_there:
            known = ", ".join("none" if value is None else str(value) for value in values)
            raise RbpxError(f"no row of {path} has {name}={asked}, which was asked for; it has {name} = {known}")
    by_k = {k: [one for one in trials if one.k == k] for k in chosen}
    rows = [row for k, of_k in by_k.items() for row in recover(k, counts_of_trials(of_k, request))]
    return Result([], rows, [*_tables(rows, path.name, {})])


SEQUENCES: Final = View[Record](
    "sequences",
    text("sequences", "sequences"),
    ends("least most", None, lambda n: f"{n:,.0f}", "number", "of a size"),
    magnitude("smallest", "smallest", means="share that passed, then of the largest"),
    magnitude("largest", "largest"),
    ends("r_least r_most", heading="r", means="over the sizes, on the tokens"),
)
LAWS: Final = View[Record](
    "laws",
    text("hits assumed", "law"),
    with_ends("α", "alpha"),
    with_ends("bias", "bias", None, signed, "of α against the law of the tokens", ends_spare=2),
    with_ends("fitted r", "r", means="one for all sizes and N", spare=1, ends_spare=3),
    state(),
)
LEARNERS: Final = View[Record](
    "learners",
    text("k", "k", lambda row: f"{row['k']:,}"),
    text(
        "learned from", "learner", None,
        "outcomes: which sequences of N tokens passed; naive: each token with the outcome of its sequence; "
        "constant: outcomes, without features; tokens: the true hits, the ceiling",
    ),
    whole("N", "n"),
    with_ends("AUC", "auc", None, decimals(3), "not known for a constant, which ranks nothing within a fold"),
    with_ends("loss", "log_loss_nats", means="log loss, nats", ends_spare=4),
    decimal("est.", "told_nats", means="loss, estimated from outcomes", spare=3),
    with_ends("excess", "excess", None, decimals(3), "mean predicted chance minus RBP_k, the share of hits", 1, 5),
    decimal("RBP_k", "rbp", digits=3, spare=2),
    state(),
)  # fmt: skip


def _tables(rows: Sequence[Record], about: str, of_tokens: Mapping[int | None, PowerLaw]) -> Iterator[Table]:
    """The sequences and the laws, then for each k the shares of hits that these imply."""
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in ("outcomes", "law", "rbp")}
    yield SEQUENCES.table(
        "Sequences of N tokens", map(_passed, _runs(of_kind["outcomes"], "k", "n")), about, note=_NOTE
    )
    laws = [law for of_k in _runs(of_kind["law"], "k") for law in _laws(of_k, of_tokens)]
    yield LAWS.table("−ln RBP_k = C · S^−α from the outcomes", laws, about)
    for of_k in _runs(of_kind["rbp"], "k"):
        yield from _rbp(of_k, about)


def _runs(rows: Sequence[Record], *keys: str) -> list[list[Record]]:
    """Rows that follow each other and have the same values."""
    return [list(same) for _, same in groupby(rows, lambda row: [row[key] for key in keys])]


def _of_k(row: Record, what: str) -> str:
    return what if row["k"] is None else f"k = {row['k']:,}, {what}"


def _passed(of_sizes: Sequence[Record]) -> Record:
    """How many sequences of one length there are of a size, the shares that passed, and the correlations of hits."""
    first = of_sizes[0]
    n, r = ([row[name] for row in of_sizes] for name in ("n_sequences", "correlation"))
    shares = [row["n_passed"] / row["n_sequences"] if row["n_sequences"] else None for row in (first, of_sizes[-1])]
    is_known = first["n"] > 1 and not any(each is None or isnan(each) for each in r)
    row = {"sequences": _of_k(first, f"N = {first['n']}"), "least": min(n), "most": max(n)}
    row |= {"smallest": shares[0], "largest": shares[1]}
    return row | {"r_least": min(r) if is_known else None, "r_most": max(r) if is_known else None}


def _laws(of_k: Sequence[Record], of_tokens: Mapping[int | None, PowerLaw]) -> Iterator[Record]:
    """The law of the tokens themselves, and those recovered, each with its bias against it."""
    if (law := of_tokens.get(of_k[0]["k"])) is not None:
        name = _of_k(of_k[0], "tokens themselves")
        yield {"law": name, **by_name(alpha=law.alpha, bias=NO_ESTIMATE, r=NO_ESTIMATE), "status": law.status}
    for row in of_k:
        name = f"{'all N' if row['n'] is None else 'N = ' + str(row['n'])}, {_ASSUMED[row['correction']]}"
        bias = row["params"]["bias_against_tokens"] or NO_ESTIMATE.record()
        yield row | {"law": _of_k(row, name), "bias": bias["value"], "bias_lo": bias["lo"], "bias_hi": bias["hi"]}


def _rbp(of_k: Sequence[Record], about: str) -> Iterator[Table]:
    """RBP_k of each size, as counted, and by the laws that a benchmark allows: of each N, and of all with one r."""
    columns: list[Column[Record] | Sequence[Column[Record]]] = [
        text("size", "size", lambda row: _short(row["size"])),
        decimal("tokens", "rbp_tokens", spare=1),
    ]
    shown = [row for row in of_k if row["correction"] == (Correction.none if row["n"] else Correction.free)]
    by_fit = _runs(shown, "n")
    sizes = [row.copy() for row in by_fit[0]] if by_fit else []
    for at, of_fit in enumerate(by_fit, 1):
        n = of_fit[0]["n"]
        name, key = (f"N = {n}", f"rbp_{n}") if n else ("all, fitted r", "rbp")
        columns.append(with_ends(name, key, ends_spare=at))
        for size, row in zip(sizes, of_fit, strict=True):
            size |= {f"{key}{end}": row[f"rbp{end}"] for end in ("", "_lo", "_hi")}
    if sizes:
        yield View("rbp", *columns).table(_of_k(of_k[0], "RBP of single tokens"), sizes, about)


def _short(size: str) -> str:
    """The end of a long name, by which the models of a hub differ."""
    return size if len(size) <= _LONGEST_NAME else f"…{size[-_LONGEST_NAME + 1 :]}"


QUESTION = of_each(answer, of_file=of_file, select=partial(in_size, along=False))
