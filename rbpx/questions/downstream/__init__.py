"""Success of a larger model on tasks, in two steps: size to a feature, the feature to success.

Step 1 is a law of a feature of the right answer in size (and tokens), step 2 success against the feature, a / (1 +
exp(-h (x - x0))) + b, from chance to 1. Chained, they predict models that neither has seen: the largest, held_out= or
S=.

Step 1 is in size and tokens where these are known and vary. A terminal shows the largest models by the feature that
predicts best; --details all features and models, both steps, and the mean error of each feature. In a training with
checkpoints step 1 takes the mean of the last= ones; step 2 drops the first and takes trailing means of the rest (drop=,
smooth=). Items may be measured, or accuracies imported.
"""

from rbpx.config.keys.output import Drawn
from rbpx.config.keys.predictions import Forms, Minimised, Predicted
from rbpx.config.keys.tasks import TwoSteps
from rbpx.questions.registry import Analysis


class DownstreamKeys(TwoSteps, Predicted, Forms, Minimised, Drawn):
    """Keys of downstream."""


ANALYSIS = Analysis(
    place=90,
    theme="tasks",
    examples=(
        "python -m rbpx downstream",
        "python -m rbpx downstream source=olmo features='[bits_per_byte]' held_out='[7B,13B]'",
        "python -m rbpx downstream dataset=arc_easy k='[1,10]' S=1e9 --format json",
    ),
    plain=(
        *("kind", "task", "source", "family", "variant", "size", "feature", "k", "S", "D", "form", "step1_predicted"),
        *("step1_actual", "step2_predicted", "chained_predicted", "chained_predicted_lo"),
        *("chained_predicted_hi", "actual", "error", "held", "n_models", "mean_error", "status", "ties"),
    ),
    title="Tasks in two steps",
    sizes=4,
    draws=True,
    trainings=True,
    across=True,
    lacking="downstream fits 3 sizes or more and predicts a larger one, and no family in store={store} has items (or "
    "imported accuracies) of 4 sizes; measure some, as of dataset=arc_easy with size=all",
)
