"""Results in, tables out: for people on a terminal, as CSV or JSON for programs."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rbpx import relations
from rbpx.analyses import Laws
from rbpx.config import Format, Request
from rbpx.imports import listed
from rbpx.laws.power import PowerLawFit
from rbpx.status import Status
from rbpx.store import Store
from rbpx.writing import opened, plain, write_csv, write_json, write_parquet

_LAW_NAMES = {
    "rbp": "-ln RBP_",
    "cross_entropy": "cross-entropy",
    "lognormal_rbp1": "lognormal RBP_1",
    "lognormal_cross_entropy": "lognormal CE",
    "error_entropy": "error-entropy",
    "self_alignment": "self-alignment",
    "confidence": "confidence",
}
_ROWS_SHOWN = 40
UNKNOWN = "–"


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many decimals, or a dash where it is unknown."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _table(title: str, columns: Sequence[str], left: int = 1) -> Table:
    """A table of which the first `left` columns hold names; two spaces stand between columns."""
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.padding, table.pad_edge = (0, 1, 0, 0), False
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=place >= left, overflow="fold")
    return table


def _console() -> Console:
    return Console(highlight=False)


def _title(group: Laws) -> str:
    first = group.runs[0]
    revision = f", revision {first.revision}" if first.revision else ""
    return f"{first.family} on {first.dataset}{revision}"


def print_laws(found: Sequence[Laws]) -> None:
    """Print what each model does, its rank distribution and its error-entropy, then every law side by side."""
    console = _console()
    for group in found:
        _print_models(console, group)
    fitted = [group for group in found if len(group.runs) >= 3]
    for group in found:
        if group not in fitted:
            names = ", ".join(run.size for run in group.runs)
            console.print(
                f"{_title(group)}: {len(group.runs)} size(s) ({names}); a law needs at least 3.", soft_wrap=True
            )
    if not fitted:
        return
    wide = console.width >= 100
    table = _table("Scaling laws: y = C · S^-alpha, least squares of ln y on ln S", _law_columns(wide))
    table.columns[0].min_width, table.columns[0].max_width = 16, 24
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    for group in fitted:
        table.add_section()
        table.add_row(f"[bold]{escape(_title(group))}[/bold]")
        for law in group.laws:
            table.add_row(*_law_row(law.law, law.k, law.fit, wide))
    console.print(table)
    console.print(_footnote(fitted), soft_wrap=True)


def _law_columns(wide: bool) -> list[str]:
    return ["law", "alpha", "95 % interval", "R2", *(["C", "stderr"] if wide else []), "backtest", "sizes", "status"]


def _law_row(law: str, k: int | None, fit: PowerLawFit, wide: bool) -> list[str]:
    interval = UNKNOWN if fit.alpha_lo is None else f"{fit.alpha_lo:.4f}..{fit.alpha_hi:.4f}"
    backtest = UNKNOWN if fit.backtest_error is None else f"{fit.backtest_error:+.1%}"
    status = _short(fit.status) if fit.status is Status.ok else f"[yellow]{_short(fit.status)}[/yellow]"
    more = [UNKNOWN if fit.C is None else f"{fit.C:.4g}", number(fit.alpha_stderr)] if wide else []
    name = f" {_LAW_NAMES[law]}{'' if k is None else k}"
    return [name, number(fit.alpha), interval, number(fit.r2, 3), *more, backtest, str(fit.n_points), status]


def _footnote(groups: Sequence[Laws]) -> str:
    group = groups[0]
    doubts = {law.fit.status for g in groups for law in g.laws} - {Status.ok}
    ties = ", ".join(dict.fromkeys(f"ties {g.ties.value}" for g in groups))
    lines = [
        f"RBP_k = Pr(rank <= k), {ties}; y is -ln RBP_k, or nats. Intervals of alpha: {group.resamples:,} resamples "
        "of the documents, the same for all sizes; they hold the uncertainty from the text, not the scatter of the "
        "models about the law. Backtest: error of the largest size, predicted from the others.",
        *([_BIASED] if any(_beside_interval(law.fit) for g in groups for law in g.laws) else []),
        *(f"{_short(doubt)}: {doubt.remedy}" for doubt in sorted(doubts)),
    ]
    return "\n".join(lines) + "\n"


_BIASED = (
    "An interval that leaves out its alpha: with few tokens a rank, entropies are biased, and resamples show by how "
    "much; the interval is corrected for it, alpha itself is not."
)


def _beside_interval(fit: PowerLawFit) -> bool:
    return (
        fit.alpha is not None
        and fit.alpha_lo is not None
        and fit.alpha_hi is not None
        and not (fit.alpha_lo <= fit.alpha <= fit.alpha_hi)
    )


def _print_models(console: Console, group: Laws) -> None:
    first = group.runs[0]
    tokens = sorted({run.n_tokens for run in group.runs})
    span = f"{tokens[0]:,}" + (f" to {tokens[-1]:,}" if len(tokens) > 1 else "")
    skipped = f", {first.n_skipped} shorter than 2 tokens skipped" if first.n_skipped else ""
    title = (
        f"{_title(group)}: {span} tokens a model, {first.n_documents:,} documents{skipped}; "
        f"{first.protocol} protocol, {first.dtype}, text {first.text_hash[:8]}"
    )
    console.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
    shown = [k for k in group.k_grid if k in (1, 10, 100)] or list(group.k_grid[:3])
    places = [group.k_grid.index(k) for k in shown]
    table = _table("", ["size", "S", *(f"RBP_{k}" for k in shown), "CE", "H(P)", "KL", "-ln ΣS"])
    for run, evidence in zip(group.runs, group.evidence, strict=True):
        m = evidence.measured
        terms = (m.cross_entropy, m.error_entropy, m.self_alignment, m.confidence)
        shares = [number(float(m.rbp[i])) for i in places]
        table.add_row(escape(run.size), f"{run.non_embedding_params:,}", *shares, *(number(float(t), 3) for t in terms))
    console.print(table)
    columns = ["size", "mu", "sigma", "-ln RBP_1", "derived", "CE", "derived", "paper", "full (gamma)"]
    table = _table("Lognormal of the ranks: from 2 up (paper), of all (full); curves from paper", columns)
    for run, evidence in zip(group.runs, group.evidence, strict=True):
        m, paper, full = evidence.measured, evidence.paper, evidence.full
        at_1 = group.k_grid.index(1) if 1 in group.k_grid else None
        measured = None if at_1 is None or m.rbp[at_1] == 0 else -math.log(m.rbp[at_1])
        table.add_row(
            escape(run.size),
            number(paper.params["mu"], 2),
            number(paper.params["sigma"], 2),
            number(measured, 3),
            number(float(m.lognormal_rbp1), 3),
            number(float(m.cross_entropy), 3),
            number(float(m.lognormal_cross_entropy), 3),
            _short(paper.status),
            f"{_short(full.status)} ({number(full.params.get('gamma_unconstrained'), 3)})",
        )
    console.print(table)


def _short(status: Status) -> str:
    return {"power_law_limit": "limit"}.get(status.value, status.value.replace("_", " "))


def print_status(store: Store, request: Request) -> None:
    """Print what a store holds, a row a family, dataset and protocol, and what failed."""
    runs = relations.table(store, "runs").to_pylist()
    failures = relations.table(store, "failures").to_pylist()
    imports = listed(store)
    if request.format is not Format.table:
        states = {"done": runs, "imported": imports, "failed": failures}
        print_records([{"state": state} | row for state, rows in states.items() for row in rows], request.format)
        return
    console = _console()
    grid: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda r: r["non_embedding_params"]):
        grid.setdefault((run["family"], run["dataset"], run["protocol"], run["dtype"]), []).append(run)
    shown = _table(f"store {store.root}", ["family", "dataset", "protocol", "dtype", "sizes", "tokens"], left=5)
    for names, members in sorted(grid.items()):
        sizes = ", ".join(run["size"] for run in members)
        shown.add_row(*map(escape, names), escape(sizes), f"{sum(run['n_tokens'] for run in members):,}")
    console.print(shown)
    if imports:
        _print_imports(console, imports)
    for failure in failures:
        console.print(
            f"failed: {failure['family']} {failure['size']} on {failure['dataset']} at {failure['at']:%Y-%m-%d %H:%M}: "
            f"{failure['error']}",
            markup=False,
            soft_wrap=True,
        )


def _print_imports(console: Console, imports: Sequence[dict[str, Any]]) -> None:
    columns = ["source", "family", "dataset", "file", "sizes", "k", "observations"]
    shown = _table("imported", columns, left=4)
    for one in imports:
        names = (one["source"], ", ".join(one["family"]), ", ".join(one["dataset"]), one["file"])
        counts = (len(one["size"]), len(one["k"]), one["n_observations"])
        shown.add_row(*map(escape, names), *(f"{count:,}" for count in counts))
    console.print(shown)


# --------------------------------------------------------------------------------------------- any table, any format


def print_records(records: Iterable[dict[str, Any]], format: Format, output: str | None = None) -> None:
    """Print records as a JSON array of objects, null for missing, or as CSV, empty for missing."""
    rows = [{key: plain(value) for key, value in record.items()} for record in records]
    with opened(output) as file:
        if format is Format.json:
            json.dump(rows, file, indent=1, default=str)
            file.write("\n")
        else:
            _write_csv(rows, file)


def _write_csv(rows: Sequence[dict[str, Any]], file: TextIO) -> None:
    if not rows:
        return
    writer = csv.DictWriter(file, list(dict.fromkeys(k for row in rows for k in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})


def print_table(table: pa.Table, format: Format, output: str | None = None) -> None:
    """Print the answer to a query; a table for people shows its first rows and says how many there are."""
    if format is Format.table and output is not None and output.endswith(".parquet"):
        write_parquet(table, output)
        return
    if format is not Format.table or output is not None:
        fallback = Format.json if str(output).endswith(".json") else Format.csv
        chosen = fallback if format is Format.table else format
        (write_json if chosen is Format.json else write_csv)(table, output)
        return
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        right = (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        )
        shown.add_column(escape(name), justify="right" if right else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in table.slice(0, _ROWS_SHOWN).columns), strict=True):
        shown.add_row(*(_cell(value) for value in row))
    _console().print(shown)
    if table.num_rows > _ROWS_SHOWN:
        print(f"{table.num_rows:,} rows, the first {_ROWS_SHOWN} shown; --format csv prints all", file=sys.stderr)


def _cell(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return escape(value.isoformat(" ") if isinstance(value, datetime) else str(value))
