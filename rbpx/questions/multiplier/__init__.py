"""How much more compute, size or tokens a baseline needs for the loss that a variant reaches.

What the baseline needs over what the variant needs for the same loss: above 1 the change pays. `multiplier A B` is
short for base=A variant=B.

Across tokenizers only bits per byte are compared, on a task the features of `downstream`. Where the runs of both vary
in size and in tokens, the variant is the surface of the baseline shifted along S, D or C. Beside the multiplier stand
its slope in ln C, its values at the least, the middle and the most compute that both have, and p of one surface for
both against constants of their own.

Elsewhere, and with E=, it fits y = E + C x^-alpha to both: axis=S compares sizes, axis=C the best model of each budget,
axis=D (or step) tokens at each S that both have. Multipliers are given with one E for both, an E for each and none, at
the loss of every model of the variant, and overall where both measured such losses. FAMILY alone names the models
without a variant, if it has any.
"""

from rbpx.config.keys.laws import Along, Irreducible, SizedBy
from rbpx.config.keys.output import QuestionKeys
from rbpx.config.keys.tasks import Base, Tasks
from rbpx.questions.registry import Analysis


class MultiplierKeys(Base, Tasks, Irreducible, Along, SizedBy, QuestionKeys):
    """Keys of multiplier."""


ANALYSIS = Analysis(
    place=200,
    theme="compare",
    examples=(
        "python -m rbpx multiplier base=pythia variant=pythia-deduped",
        "python -m rbpx multiplier base=mine variant=theirs axis=C k=1 dataset=c4",
        "python -m rbpx multiplier base=mine variant=theirs E=1.69",
    ),
    plain=(
        *("kind", "base", "variant", "source", "dataset", "axis", "fixed_size", "law", "k", "offset", "size"),
        *("multiplier", "multiplier_lo", "multiplier_hi", "slope", "slope_lo", "slope_hi", "loss"),
        *("x_variant", "C", "S", "D", "status", "ties"),
    ),
    title="What a change is worth",
    across=True,
    words=("base", "variant"),
    lacking="multiplier needs two families that were measured on the same text; store={store} has none",
)
