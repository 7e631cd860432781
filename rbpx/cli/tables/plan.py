"""The cost of a grid: planned cells in, a table and its totals out.

Commands that measure a sweep in parts: its requests in, a command for each shard out.
"""

import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.cores import n_cores
from rbpx.display.records import print_records
from rbpx.display.terminal import console, grid, put
from rbpx.display.vocabulary import UNKNOWN, time
from rbpx.errors import RbpxError, number_of
from rbpx.measure.plan.memory import NO, SPLIT, free_memory
from rbpx.measure.plan.plan import Planned
from rbpx.measure.plan.throughput import CALIBRATED
from rbpx.measure.shards import divide

_WIDE = 100  # characters, from which on there is room for more columns


def show(results: Sequence[Planned], format: Format) -> None:
    """Print a row for each cell; a cell that several jobs of a sweep name stands once."""
    planned = list({planned.cell_state.cell: planned for planned in results}.values())
    if format is not Format.table:
        print_records([one.row() for one in planned], format)
        return
    screen = console()
    wide = screen.width >= _WIDE
    columns = ["size", "S", *(["parameters", "weights MiB"] if wide else []), "peak MiB", "FLOPs", "tokens", "disk MiB"]
    shown = grid("What the grid would cost", [*columns, "time", "fits", "state"])
    for title, cells in groupby(sorted(planned, key=_place(planned)), heading):
        shown.add_part(title, [[escape(text) for text in _cells(one, wide)] for one in cells])
    put(screen, shown)
    for line in _notes(planned):
        screen.print(line, markup=False, soft_wrap=True)


def _place(planned: Sequence[Planned]) -> Callable[[Planned], int]:
    """In which section a cell stands: each begins where the first of its cells was planned."""
    titles = list(dict.fromkeys(map(heading, planned)))
    return lambda one: titles.index(heading(one))


def heading(one: Planned) -> str:
    """The names that the cells of a section share."""
    cell = one.cell_state.cell
    choices = [None if cell.protocol == "paper" else cell.protocol, None if cell.dtype == "float32" else cell.dtype]
    choices += [f"revision {cell.revision}" if cell.revision else None]
    return ", ".join([f"{cell.family} on {cell.dataset}", *(choice for choice in choices if choice)])


def _cells(one: Planned, wide: bool) -> list[str]:
    mark = "~" if one.tokens_counted is False else ""
    more = [_count(one.total_params), _mib(one.weights_mib)] if wide else []
    return [
        one.cell_state.cell.size,
        _count(one.non_embedding_params),
        *more,
        _mib(one.memory_mib),
        UNKNOWN if one.flops is None else f"{one.flops:.1e}",
        UNKNOWN if one.tokens is None else f"{mark}{one.tokens:,}",
        _mib(one.disk_mib),
        time(one.time_s),
        one.fits or UNKNOWN,
        one.cell_state.state.value,
    ]


def _count(n: float | None) -> str:
    """A number of parameters in three digits."""
    if n is None:
        return UNKNOWN
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return f"{n:g}"


def _mib(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _notes(planned: Sequence[Planned]) -> list[str]:
    """The totals of what is left to do, and what the columns mean."""
    left = [one for one in planned if not one.is_done]
    cells = number_of(len(planned), "cell")
    totals = _total(left) if left else "."
    lines = [f"{cells}, {len(planned) - len(left)} done, {len(left)} to do{totals}"]
    sources = {one.time_from for one in left if one.time_from is not None}
    if sources == {CALIBRATED}:
        lines.append("Times at the pace of a small model, measured now.")
    elif sources:
        lines.append(f"Times at the pace of {', '.join(sorted(sources))}; calibrate=true measures this machine again.")
    elif left:
        lines.append("No times: nothing has been measured here yet on this device and dtype; add calibrate=true.")
    if any(one.tokens_counted is False for one in left):
        lines.append("~ tokens are estimated, until a run with the same tokenizer has counted them.")
    if any(one.tokens is None for one in left):
        lines.append("No tokens: the text is not on this machine yet.")
    meaning = {
        "bfloat16": "bfloat16: add dtype=bfloat16",
        SPLIT: "split: device=split spreads it over GPUs, main memory and disk",
        NO: "no: neither helps; lower tokens_per_batch, or use another machine",
    }
    dtypes = {one.cell_state.cell.dtype for one in planned}
    needed = [text for name, text in meaning.items() if name not in dtypes and any(one.fits == name for one in left)]
    lines.append("Peak: memory of one process; fits: what makes it fit into the memory free now.")
    lines.append(f"This process has {_here()}.")
    if needed:
        lines.append(f"{'; '.join(needed)}.")
    lines += [
        f"{one.cell_state.cell} failed: {one.cell_state.error}" for one in left if one.cell_state.error is not None
    ]
    return lines


def _total(left: Sequence[Planned]) -> str:
    """Sums of what is known; `at least` where a cell is not."""
    totals = []
    for name, form in (
        ("tokens", lambda total: f"{total:,} tokens"),
        ("flops", lambda total: f"{total:.1e} FLOPs"),
        ("time_s", time),
        ("disk_mib", lambda total: f"{_mib(total)} MiB on disk"),
    ):
        values = [value for value in (getattr(one, name) for one in left) if value is not None]
        if values:
            totals.append(f"{'at least ' if len(values) < len(left) else ''}{form(sum(values))}")
    return f": {', '.join(totals)}." if totals else "."


def _here() -> str:
    """What this process has, and with it whatever is started as it was; a job of Slurm's has what it was given."""
    free = free_memory("auto", Path.cwd())
    parts = [number_of(n_cores(), "core")]
    parts += [] if free.cpu_mib is None else [f"{free.cpu_mib:,.0f} MiB of free memory"]
    parts += [f"GPU {at} with {gpu_mib:,.0f} MiB free" for at, gpu_mib in enumerate(free.gpus_mib)]
    return ", ".join(parts)


if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine

_SHARDS = 16  # where their number is not given, or as many as there are cells
_OF_PLAN = ("format", "shard", "calibrate", "output")


def print_jobs(requests: Sequence[Request], line: "CommandLine") -> None:
    """Print a command for each shard; on stderr, how they are balanced and the same for Slurm and Kubernetes.

    Raises:
        RbpxError: there are fewer cells than shards, or one shard is named.
    """
    shard = requests[0].shard
    if shard is not None and shard.number is not None:
        raise RbpxError(f"shard={shard} is one of the commands that --format jobs prints; give their number, shard=16")
    n_cells = len(divide(requests, 1)[0].places)
    n_shards = min(n_cells, _SHARDS) if shard is None else shard.n_shards
    if n_shards > n_cells:
        raise RbpxError(
            f"shard={n_shards} is more than the {number_of(n_cells, 'cell')} of the grid; give at most that"
        )
    loads = divide(requests, n_shards)
    command = _command(line)
    for number in range(1, n_shards + 1):
        print(f"{command} shard={number}/{n_shards}")
    costs = [load.cost for load in loads]
    counts = [len(load.places) for load in loads]
    told = f"{number_of(n_shards, 'shard')} of {number_of(n_cells, 'cell')}: {_range(counts, '{:,}')} cells, "
    told += f"{_range(costs, '{:.1e}')} FLOPs each if all documents fill a window"
    print(told, file=sys.stderr)
    slurm = shlex.quote(f"{command} shard=$SLURM_ARRAY_TASK_ID/{n_shards}")
    print(f"Slurm: sbatch --array=1-{n_shards} --wrap {slurm}", file=sys.stderr)
    index = "$((JOB_COMPLETION_INDEX + 1))"
    print(
        f"Kubernetes, completions: {n_shards}, completionMode: Indexed: {command} shard={index}/{n_shards}",
        file=sys.stderr,
    )


def _command(line: "CommandLine") -> str:
    """The command that measures the whole sweep, without the keys of `plan`."""
    return line.retyped("measure", _OF_PLAN.__contains__)


def _range(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"
