"""What a grid would cost before it runs, one row per cell.

Shows for each cell S, the memory of weights, a batch and its logits, what would make it fit (bfloat16, device=split),
FLOPs, tokens, disk, time, and whether it is done; nothing is downloaded or measured.

--format jobs prints commands that measure the grid in shards. FLOPs are 2 S a token, 2 V D for the logits of a scored
one, and 4 L A T for attention (arXiv 2203.15556). Tokens are exact where the store holds the same text and tokenizer,
else estimated (~), and empty where the text is not on this machine. Times are those of the most similar run, or
measured now with calibrate=true.
"""

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import PrintedRows
from rbpx.config.keys.runs import Planning
from rbpx.config.options import Format


class PlanKeys(Planning, PrintedRows):
    """Keys of plan."""


VERB = Verb(
    order=40,
    theme="measure",
    examples=(
        "python -m rbpx plan model=pythia dataset=pydoc calibrate=true",
        "python -m rbpx plan -m model=gpt2,pythia dataset=wikipedia,c4 shard=16 --format jobs",
    ),
    keys=PlanKeys,
)


def perform(asked: Command) -> None:
    """Prints each cell of the sweep or its shard once, or the commands that measure its shards."""
    from rbpx.cli.tables.plan import print_jobs, show

    if asked.request.format is Format.jobs:
        print_jobs(asked.requests, asked.line)
        return
    from rbpx.measure.plan.plan import plan_grid
    from rbpx.measure.shards import of_shard

    show(of_shard(asked.requests, [plan_grid(request) for request in asked.requests]), asked.request.format)
