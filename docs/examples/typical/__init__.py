"""How the typical rank of the true token falls with size.

The typical rank is the geometric mean of the ranks of all tokens, exp of the mean of ln rank. Fits typical = C S^-alpha
to the runs of each group, and keeps the law in `fits` under the name typical_rank.
"""

from rbpx.config.keys.laws import Along, Resampled, TieRule
from rbpx.config.keys.output import Drawn
from rbpx.questions.registry import Analysis


class TypicalKeys(TieRule, Resampled, Along, Drawn):
    """Keys of typical."""


ANALYSIS = Analysis(
    examples=("python -m rbpx typical dataset=pydoc", "python -m rbpx typical ties=mid --format csv"),
    title="The typical rank",
    sizes=3,
    in_report=True,
    draws=True,
    tokens=True,
)
