"""Whether trainings can tell the effect of size from that of tokens, and which to train next.

Judges how the sizes S and tokens D of a family's trainings are spread: by the range of D/S, the residual standard
deviation of ln D on ln S (0 where tokens are a power of size), and the condition number of the surface's derivatives.
Where size and tokens vary together (collinear), a surface predicts only near their line.

next=N names N runs to train next, one after the other, each the run that narrows most per FLOP: the exponents; with
budgets= the best S at these budgets; with S= and D= the prediction there. Candidates reach up to four times the largest
S and D; flops= is what all N may cost together.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="downstream",
    theme="predict",
    examples=(
        "python -m rbpx design",
        "python -m rbpx design next=5 flops=1e20 laws='[cross_entropy]'",
        "python -m rbpx design next=3 S=7e9 D=2e12 --format json",
    ),
    title="Design of the trainings",
    sizes=1,
    trainings=True,
    keys=(
        *("k", "S", "D", "ties", "resamples", "seed", "laws", "form", "objective", "delta", "budgets", "last"),
        *("next", "flops"),
    ),
    lacking="no family in store={store} has a training with known tokens; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
