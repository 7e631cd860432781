"""Commands that measure a sweep in parts: its requests in, a command for each shard out."""

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.config.request import Request
from rbpx.counts import number_of
from rbpx.errors import RbpxError
from rbpx.measure.shards import divide

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
    n_cells = divide(requests, 1)[0].n_cells
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
    counts = [load.n_cells for load in loads]
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
    words = [word for word in line.hydra if word.partition("=")[0] not in _OF_PLAN]
    trusts = ["--trust-config"] if line.trusts_config else []
    return shlex.join(["python", "-m", "rbpx", "measure", *trusts, *words])


def _range(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"
