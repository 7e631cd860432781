"""What a grid would cost before it runs, one row per cell.

For each cell S, peak memory and what would make it fit (bfloat16, device=split), FLOPs, tokens, disk, expected time,
and whether it is done. Nothing is downloaded or measured. FLOPs: 2 S per token, 2 V D for the logits of a scored one,
and 4 L A T for attention (arXiv 2203.15556). Tokens are exact where the store holds a run of the same text and
tokenizer, else estimated (~), and empty where the text is not on this machine. What items share is read, and counts,
once. Times are those of the most similar run on the device, or measured now with calibrate=true. --format jobs prints
the commands that measure the grid in shards.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Job, Outcome, Verb
from rbpx.config.keys.runs import GRID
from rbpx.config.options import Format

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine

VERB = Verb(
    order=40,
    theme="measure",
    examples=(
        "python -m rbpx plan model=pythia dataset=pydoc calibrate=true",
        "python -m rbpx plan -m model=gpt2,pythia dataset=wikipedia,c4 shard=16 --format jobs",
    ),
    primary="measure",
    keys=(*GRID, "best", "shard", "calibrate", "format"),
)


def start(job: Job) -> list[Any]:
    """The costs of one grid; none where only commands are asked for, which need no costs."""
    from rbpx.measure.plan.plan import plan_grid

    return [] if job.request.format is Format.jobs else plan_grid(job.request)


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> None:
    """Print each cell of the whole sweep, or of a part of it, once; or the commands that measure its parts."""
    requests = [outcome.request for outcome in outcomes]
    if requests[0].format is Format.jobs:
        from rbpx.cli.tables.plan import print_jobs

        print_jobs(requests, line)
        return
    from rbpx.cli.tables.plan import show
    from rbpx.measure.shards import of_shard

    show(of_shard(requests, [outcome.answer for outcome in outcomes]), requests[0].format)
