"""What a store of runs says about the next one.

The best size and tokens of a budget with the loss of such a run, whether smaller runs predicted the largest, and what
smaller models that train for longer lose.

It asks for a family whose runs have size and tokens; flops= is by default ten times the most compute of the runs. All
is averaged over forms, bends and misfit, with 95 % intervals; form= adds what one form says, which passes only if its
own backtests hold. The status `beyond` says that no run lies near a number. --details and pages add the irreducible
part and the runs to train next; `multiplier` says what a variant is worth beside the runs without one. It is about
cross-entropy unless laws= names something else; S= with D= asks for one run.

Up to three runs are named that narrow the loss of the best run most, each by 2 % or more. next=N names N runs that
narrow the prediction at S= and D=, or else the loss of the best run with ten times the compute. Those that narrow most
per FLOP come first; flops= is then what all may cost together, and adds the best use of that.
"""

from rbpx.config.keys.output import Drawn
from rbpx.config.keys.predictions import Deciding, Forms, Predicted, Surfaces
from rbpx.questions.registry import Analysis


class DecideKeys(Deciding, Predicted, Forms, Surfaces, Drawn):
    """Keys of decide."""


ANALYSIS = Analysis(
    place=100,
    theme="predict",
    examples=(
        "python -m rbpx decide",
        "python -m rbpx decide flops=5e21 inference_tokens=1e13",
        "python -m rbpx decide next=3 flops=5e21 S=7e9 D=2e12",
        "python -m rbpx decide source=them S=7e9 D=2e12 --format html --output decision.html",
    ),
    plain=(
        *("kind", "law", "k", "source", "family", "dataset", "variant", "method", "C", "S", "S_lo", "S_hi", "D"),
        *("D_lo", "D_hi", "y", "y_lo", "y_hi", "E", "measured", "held", "rank", "narrowed", "status", "ties"),
    ),
    title="What to train",
    sizes=3,
    draws=True,
    trainings=True,
    in_report=True,
    lacking="no family in store={store} has 3 trainings with known tokens on one text; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
