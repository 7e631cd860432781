"""Writes the findings of a named study, from the rows of its analyses, at the end of its file.

The study's SQL selects its result from one relation, `found`: all columns of all rows, nested values as JSON.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from rbpx.config.keys.output import StudyConfig
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.files.escapes import visible_line
from rbpx.files.output import output_file
from rbpx.store.sql import SqlLimits, select_among
from rbpx.store.store import Record
from rbpx.version import __version__

_MOST_RUNS: Final = 120  # listed by name
MARK: Final = "# ---- findings: written by python -m rbpx record experiment="


def write_findings(
    study: StudyConfig,
    records: Sequence[Record],
    source: Path,
    output: str | None,
    changes: Sequence[str],
    limits: SqlLimits,
) -> Path:
    """Writes a study's file with its findings at the end, in place of earlier findings, or to `output`.

    `records` are rows of its analyses, `changes` overrides that the study does not set itself, which the findings list.
    Raises RbpxError where the study finds nothing, or its SQL is wrong.
    """
    answer = _answer(study, records, limits) if records else None
    if not answer:
        raise RbpxError(f"experiment={study.name} finds nothing on this grid, or its study.result gives no rows of it")
    runs = sorted({run_id for record in records for run_id in _run_ids(record)})
    lines = [f"{MARK}{study.name} ----", f"# rbpx {__version__}; the SQL is study.result; runs:"]
    named = ["#   " + " ".join(runs[at : at + 6]) for at in range(0, len(runs), 6)]
    lines += named if len(runs) <= _MOST_RUNS else [f"#   {len(runs)}, whose digest is {digest(runs)}"]
    texts = sorted({(r["dataset"], r["text_hash"][:8]) for r in records if r.get("text_hash")})
    lines += [f"# texts: {', '.join(' '.join(text) for text in texts)}"] if texts else []
    lines += [f"# with {' '.join(changes)}"] if changes else []
    lines += ["#", *(f"# {line}".rstrip() for line in _aligned(answer))]
    lines = [visible_line(line) for line in lines]  # a line break in a name would end the comment
    text = source.read_text(encoding="utf-8")
    body = text[: text.index(MARK)] if MARK in text else text
    with output_file(output or str(source)) as path:
        path.write_text(body.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return Path(output or source)


def _answer(study: StudyConfig, records: Sequence[Record], limits: SqlLimits) -> pa.Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: pa.array([_plain(record.get(name)) for record in records]) for name in names}
    try:
        return select_among("found", pa.table(columns), study.result or "", limits)
    except (duckdb.Error, RbpxError) as problem:
        line = " ".join(str(problem).split("\n\n")[0].split())
        raise RbpxError(f"experiment={study.name}: its study.result is wrong: {line}") from None


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value


def _run_ids(record: Record) -> list[str]:
    return record.get("run_ids") or ([record["run_id"]] if record.get("run_id") else [])


def _aligned(table: pa.Table) -> list[str]:
    """Aligns columns of text: names to the left, numbers to the right, a dash for unknown."""
    cells = [[_cell(value) for value in column.to_pylist()] for column in table.columns]
    right = [pa.types.is_floating(t) or pa.types.is_integer(t) or pa.types.is_decimal(t) for t in table.schema.types]
    widths = [max(map(len, [name, *column])) for name, column in zip(table.column_names, cells, strict=True)]

    def line(values: Sequence[str]) -> str:
        placed = zip(values, widths, right, strict=True)
        return "  ".join(v.rjust(width) if to_right else v.ljust(width) for v, width, to_right in placed).rstrip()

    return [line(table.column_names), *(line(row) for row in zip(*cells, strict=True))]


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value + 0.0:g}" if isinstance(value, float) else str(value)
