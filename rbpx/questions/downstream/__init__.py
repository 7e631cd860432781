"""Success of a larger model on tasks, in two steps: size to a feature, the feature to success.

Step 1 is a law of a feature of the right answer: a surface in size and tokens where these are known and vary, else a
law in size, averaged over forms. Step 2 is success against the feature, a / (1 + exp(-h (x - x0))) + b, from chance
to 1. Chained is step 2 at the feature that step 1 predicts, for models that neither step has seen: the largest, or
held_out=; with S= (and D=) for models still to be trained. Features: cross_entropy, bits_per_byte, rbp and
exact_match at each k=, error_entropy, soft_accuracy; a terminal shows the largest models by the one that predicts best,
--details all features and models, step 1, step 2, and the errors of the features with intervals over items.

In a training with checkpoints, step 1 takes the mean of the last= checkpoints; step 2 drops the share drop= of them
from the beginning and takes trailing means of smooth= of the rest. anchor= adds one point. Works on measured items, and
on imported tables with accuracies. The success of guessing is known for the tasks in conf/dataset; chance= gives it for
others.
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="surface",
    theme="tasks",
    examples=(
        "python -m rbpx downstream",
        "python -m rbpx downstream source=olmo features='[bits_per_byte]' held_out='[7B,13B]'",
        "python -m rbpx downstream dataset=arc_easy k='[1,10]' S=1e9 --format json",
    ),
    title="Tasks in two steps",
    sizes=4,
    draws=True,
    trainings=True,
    across=True,
    keys=(
        *("k", "S", "D", "ties", "resamples", "seed", "form", "objective", "delta", "features", "held_out", "last"),
        *("drop", "smooth", "chance", "anchor", "starts", "bounds"),
    ),
    lacking="downstream fits 3 sizes or more and predicts a larger one, and no family in store={store} has items (or "
    "imported accuracies) of 4 sizes; measure some, as of dataset=arc_easy with size=all",
)
