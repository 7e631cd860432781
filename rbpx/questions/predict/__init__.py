"""What the laws predict for other sizes, and how right they were.

Predicts what new models would show on the same text, one row a target: S='[1B,10B]' by size; S='[1B,7B]'
D='[20B,2T]' pairwise by size and tokens, and with grid=true each size with each number of tokens. unique_tokens=5e9 is
for runs that repeat their text beyond so many tokens, where others did.

Each has a 95 % interval and its warnings, averaged over forms by how well they fit. Backtests predict the larger sizes
from the smallest; laws stand in the order of how well they predict.

By size, forms are a power law, one with an offset and one that bends; method= asks for laws by one method too. By size
and tokens, surfaces are fitted to all trainings whose tokens are known (see `surface`); form= asks for one of them too.
What is asked for passes only where its own backtests hold; --details has each. Where size and tokens vary together, a
law in one of them predicts. Weights of runs count by size and tokens, and in the law by each method.

register=NAME is for one family on one text and models that are not measured on it yet; `forecasts` scores it.
axis=QUANTITY@TEXT, as axis=cross_entropy@stdlib, predicts by regression on what a model shows on that text: x=, or
models that are on that text and not on this one.
"""

from rbpx.config.keys.output import Drawn
from rbpx.config.keys.predictions import Forms, Predicting, Repeated, Surfaces
from rbpx.questions.registry import Analysis


class PredictKeys(Predicting, Forms, Repeated, Surfaces, Drawn):
    """Keys of predict."""


ANALYSIS = Analysis(
    place=70,
    theme="predict",
    examples=(
        "python -m rbpx predict S='[10M,100M]'",
        "python -m rbpx predict S='[1B,7B]' D='[200B,2T]' grid=true",
        "python -m rbpx predict S=1B D=100B unique_tokens=2e10",
        "python -m rbpx predict dataset=stdlib S='[1e7,1e8]' method='[ols,offset]'",
        "python -m rbpx predict model=ladder dataset=stdlib S=1e7 register=before_the_10m",
        "python -m rbpx predict dataset=pydoc axis=cross_entropy@stdlib x=2.9",
    ),
    plain=(
        *("kind", "law", "k", "source", "family", "dataset", "variant", "revision", "S", "D", "x", "dataset_b"),
        *("method", "n_fitted", "y", "lo", "hi", "beyond", "measured", "error", "held", "status", "ties"),
        "fit_id",
    ),
    kinds=("prediction", "backtest", "none"),
    title="Backtest and prediction",
    on_card=True,
    sizes=3,
    draws=True,
)
