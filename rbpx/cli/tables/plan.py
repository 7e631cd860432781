"""Prints the cost of planned cells, and commands that measure a sweep in shards."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rbpx.config.keys.runs import GridKeys
from rbpx.config.options import Format
from rbpx.cores import n_cores
from rbpx.display.records import print_records
from rbpx.display.table import SIZE, table_of
from rbpx.display.terminal import console, print_tables, print_under
from rbpx.display.vocabulary import amount, enumerated, rough, short, time
from rbpx.errors import RbpxError, number_of
from rbpx.files.escapes import out, say, visible_line
from rbpx.measure.notes import unscored
from rbpx.measure.plan.memory import free_memory
from rbpx.measure.plan.plan import Planned
from rbpx.measure.shards import divide

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine

_TOKENS: Final = "~ until a run with the same tokenizer has counted them"
_FITS: Final = "what fits into free memory: dtype=float32, dtype=bfloat16, device=split, or no: lower tokens_per_batch"
_NAMED: Final = {"protocol": ("", "paper"), "dtype": ("", "float32"), "revision": ("revision ", None)}
_SHARDS: Final = 16  # if their number is not given; fewer if there are fewer cells
_OF_PLAN: Final = ("format", "shard", "calibrate", "output")


def _tokens(row: Any) -> str | None:
    mark = "~" if row["tokens_counted"] is False else ""
    return None if row["tokens"] is None else f"{mark}{row['tokens']:,}"


_COSTS: Final = table_of(
    "costs", SIZE, ("S", "non_embedding_params", amount), ("parameters", "total_params", amount),
    ("weights MiB", "weights_mib", short),
    ("memory MiB", "memory_mib", short, "weights, a batch and its logits"),
    ("FLOPs", "flops", rough),
    ("tokens", "tokens", "", _TOKENS),
    ("disk MiB", "disk_mib", short), ("time", "time_s", time),
    ("fits", "fits", str, _FITS),
    ("state", "state"),
    first="size non_embedding_params memory_mib flops tokens disk_mib time_s fits state, total_params",
)  # fmt: skip


def show(results: Sequence[Planned], format: Format) -> None:
    """Prints a row for each cell; a cell that several jobs share is printed once."""
    planned = list({planned.cell_state.cell: planned for planned in results}.values())
    rows = [one.row() for one in planned]
    if format is not Format.table:
        print_records(rows, format)
        return
    screen, sections = console(), dict[str, list[Any]]()
    for row, cell in zip(rows, [one.cell_state.cell for one in planned], strict=True):
        told = {"size": f"{cell.size}{cell.adapted}", "tokens": _tokens(row)}
        sections.setdefault(_heading(row), []).append(row | told)
    tables = [_COSTS.of("What the grid would cost", of, about) for about, of in sections.items()]
    answer, *notes = _notes(planned)
    print_under(screen, [answer, ""])
    means = print_tables(screen, tables)
    print_under(screen, (), (), [*notes, *means])


def _heading(row: Any) -> str:
    named = (f"{sign}{row[name]}" for name, (sign, usual) in _NAMED.items() if row[name] != usual)
    return ", ".join([f"{row['family']} on {row['dataset']}", *named])


def _notes(planned: Sequence[Planned]) -> list[str]:
    left = [one for one in planned if not one.is_done]
    counted = [number_of(len(planned), "cell"), f"{len(planned) - len(left)} done", f"{len(left)} to do"]
    sources = ", ".join(sorted({one.costs["time_from"] for one in left if one.costs["time_from"] is not None}))
    free = free_memory("auto", Path.cwd())  # for a Slurm job its allocation
    parts = [number_of(n_cores(), "core")]
    parts += [] if free.cpu_mib is None else [f"{free.cpu_mib:,.0f} MiB of free memory"]
    parts += [f"GPU {at} with {gpu_mib:,.0f} MiB free" for at, gpu_mib in enumerate(free.gpus_mib)]
    return [
        f"{', '.join(counted)}{_total(left)}.",
        *_not_here(left),
        f"Times from {sources or 'no run, as none has this device and dtype'}; calibrate=true measures this machine.",
        f"This process has {', '.join(parts)}.",
        *_unscored(left),
        *(f"{one.cell_state.cell} failed: {one.cell_state.error}" for one in left if one.cell_state.error is not None),
    ]


def _not_here(left: Sequence[Planned]) -> Iterator[str]:
    unread = [one for one in left if one.costs["non_embedding_params"] is None]
    models = list(dict.fromkeys(f"{one.cell_state.cell.family} {one.cell_state.cell.size}" for one in unread))
    if models:
        yield (
            f"A plan reads no hub, and this machine has no readable config.json of {enumerated(models)}: S, memory, "
            "FLOPs, disk and time are unknown; download fetches it."
        )
    if texts := list(dict.fromkeys(one.cell_state.cell.dataset for one in left if one.costs["tokens"] is None)):
        yield f"Tokens of {enumerated(texts)} are unknown, as the text or a tokenizer is not on this machine."


def _unscored(left: Sequence[Planned]) -> list[str]:
    """Says what part of each text is scored, from its first known cell."""
    told: dict[str, str] = {}
    for one in left:
        n_tokens, share = one.costs["tokens"], one.costs["scored_share"]
        if n_tokens and share is not None:
            cell, said = one.cell_state.cell, unscored(n_tokens, share, one.costs["tokens_counted"] is True)
            if said is not None:
                told.setdefault(f"{cell.dataset}, protocol={cell.protocol}", said)
    return [f"{on}: {said}." for on, said in told.items()]


def _total(left: Sequence[Planned]) -> str:
    """Sums the known values; `at least` if a cell is unknown."""
    totals = []
    for name, form in (
        ("tokens", "{:,} tokens".format),
        ("flops", "{:.1e} FLOPs".format),
        ("time_s", time),
        ("disk_mib", lambda total: f"{short(total)} MiB on disk"),
    ):
        values = [one.costs[name] for one in left if one.costs[name] is not None]
        if values:
            totals.append(f"{'at least ' if len(values) < len(left) else ''}{form(sum(values))}")
    return f": {', '.join(totals)}" if totals else ""


def print_jobs(requests: Sequence[GridKeys], line: "CommandLine") -> None:
    """Prints a command for each shard; on stderr, their balance and the same for Slurm and Kubernetes."""
    shard = requests[0].shard
    n_cells = len(divide(requests, 1)[0].places)
    n_shards = min(n_cells, _SHARDS) if shard is None else shard.n_shards
    if n_shards > n_cells:
        raise RbpxError(
            f"shard={n_shards} is more than the {number_of(n_cells, 'cell')} of the grid; give at most that"
        )
    loads = divide(requests, n_shards)
    command = f"{line.retyped('measure', _OF_PLAN.__contains__)} shard="
    for number in range(1, n_shards + 1):
        job = f"{command}{number}/{n_shards}"
        print(visible_line(job) if sys.stdout.isatty() else job, file=out())
    n_most, cost = max(len(load.places) for load in loads), max(load.cost for load in loads)
    for told in (
        f"{number_of(n_shards, 'shard')} of {number_of(n_cells, 'cell')}, at most {number_of(n_most, 'cell')} and "
        f"{cost:.1e} FLOPs each if all documents fill a window",
        f"Slurm: sbatch --array=1-{n_shards} --wrap {shlex.quote(f'{command}$SLURM_ARRAY_TASK_ID/{n_shards}')}",
        f"Kubernetes, completions: {n_shards}, completionMode: Indexed: "
        f"{command}$((JOB_COMPLETION_INDEX + 1))/{n_shards}",
    ):
        say(told)
