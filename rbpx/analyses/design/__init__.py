"""Whether trainings can tell the effect of size from that of tokens, and which to train next.

Judges how the sizes S and tokens D of a family's trainings are spread: by the range of D/S, the residual standard
deviation of ln D on ln S (0 where tokens are a power of size), and the condition number of the surface's derivatives.
Where size and tokens vary together (collinear), a surface predicts only near their line.

next=N names N runs to train next, one after the other, each the one that narrows most per FLOP: the loss of the
best run with ten times the compute; with budgets= the best S at these budgets; with S= and D= the prediction there.
flops= is what all of them may cost together, and adds the best use of that, one large run or several. It goes by
draws of the surface over forms, misfit and scatter. A run that narrows by less than 2 % is not named, and where more
hardly help, it says so. Of sweeps (see surface) frontier=true takes the best of the runs of each size and as many
tokens.
"""

from rbpx.analyses.registry import Analysis

ANALYSIS = Analysis(
    after="downstream",
    theme="predict",
    examples=(
        "python -m rbpx design",
        "python -m rbpx design flops=5e21 laws='[cross_entropy]'",
        "python -m rbpx design next=3 S=7e9 D=2e12 --format json",
    ),
    title="Design of the trainings",
    sizes=1,
    trainings=True,
    keys=(
        *(
            "k",
            "S",
            "D",
            "size_by",
            "ties",
            "resamples",
            "seed",
            "laws",
            "form",
            "objective",
            "delta",
            "budgets",
            "last",
        ),
        *("next", "flops", "frontier", "outliers"),
    ),
    lacking="no family in store={store} has a training with known tokens; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
