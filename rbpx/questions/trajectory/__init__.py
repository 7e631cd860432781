"""Where a run that is underway ends, by its plan of learning rates.

Predicts the cross-entropy at the end of the plan of each run that is not there yet, with its interval, by L = E + A
x^-alpha - C a.

x is progress, the sum over steps of (rate / highest rate)^0.6, and a annealing, the falls of the rate. Finished runs of
its size, family, variant and text teach the law of a run, those of another size its shape; where one had the same plan,
its drop from the same step on is the answer. A run without any rests on its own states.

A plan is imported: rows that have lr and no loss, or schedule= with schedule_tokens=, warmup_tokens=, decay_tokens= and
final_lr= (python -m rbpx import --help). A run without one counts as finished. Rates that rise again have no
prediction.
"""

from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class TrajectoryKeys(Drawn):
    """Keys of trajectory."""

    WITHOUT = ("checkpoints",)


ANALYSIS = Analysis(
    place=120,
    examples=("python -m rbpx trajectory", "python -m rbpx trajectory source=them variant=hero --details"),
    plain=(
        *("source", "family", "dataset", "variant", "revision", "model", "S", "step", "of", "loss", "y", "lo", "hi"),
        *("rests_on", "status", "ties"),
    ),
    title="Runs that are underway",
    theme="predict",
    across=True,
    draws=True,
)
