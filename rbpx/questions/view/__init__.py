"""A text with each token coloured by its rank, in the terminal or on a page.

Prints the beginning of one document (--details: all of it) by the largest model's ranks: 1 plain, to 10, to 100 and
beyond; without colours, ‹ › mark ranks to 100 and « » those beyond.

--format html writes it under the smallest and the largest model, side by side, with rank and probability at each token.
Without doc=, the document on which larger models gain most is shown. a= and b= choose two models, as in `compare`. An
item of a task is shown with its context, and under every model with the ranks of its answer and its probability: that
of the right choice among the choices, or of the target.
"""

from rbpx.config.keys.laws import TieRule
from rbpx.config.keys.output import QuestionKeys
from rbpx.config.keys.tasks import OneDocument, TwoModels
from rbpx.questions.registry import Analysis


class ViewKeys(OneDocument, TwoModels, TieRule, QuestionKeys):
    """Keys of view."""


ANALYSIS = Analysis(
    place=190,
    theme="tokens",
    examples=(
        "python -m rbpx view dataset=pydoc doc=3",
        "python -m rbpx view dataset=pydoc size=25k",
        "python -m rbpx view a=ladder/25k b=ladder/3.2m dataset=pydoc --format html --output text.html",
    ),
    plain=("dataset", "doc_id", "source_id", "model", "run_id", "ties", "position", "text", "rank", "nats", "best"),
    title="A text, token by token",
    in_report=True,
    tokens=True,
    across=True,
    lacking="view needs a measured text; store={store} has none that was asked about",
)
