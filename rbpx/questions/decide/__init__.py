"""What a store of runs says about the next one.

For a family whose runs have size and tokens: the best size and tokens of a budget, the loss of such a run, and whether
smaller runs predicted the largest; a table shows what smaller models that train for longer lose. --details and pages
add the irreducible loss, what a variant is worth compared with runs without one and from how much compute on, and the
runs to train next. All of it averages over forms, bends and misfit, like predict S= D=; intervals are 95 %. The status
`beyond` marks an extrapolation: no run lies near.

flops= is the budget to spend (by default ten times the most compute of a run), and budgets= adds others.
inference_tokens= finds the cheapest training and serving together with the same loss (with inference_within=true the
least loss where flops= pays for both), and S= with D= gives the loss of one run. The loss is cross-entropy unless laws=
names another quantity. For sweeps (see surface) frontier=true takes the best of the runs of each size and as many
tokens.

Up to three runs are named that narrow the loss of the best run most, by draws of the surface over forms, misfit and
scatter; a run must narrow it by 2 %. next=N names N runs, also where size and tokens vary together, and can narrow
something else: with S= and D= the prediction there, with budgets= the best S at these budgets, and else the loss of the
best run with ten times the compute of the runs. They are chosen one after another, each the one that narrows most per
FLOP given those before it; flops= is then the cost of all of them, and adds the best use of that budget, one large run
or several.

Outliers among the runs are named and left out (outliers=keep keeps them).
"""

from rbpx.questions.registry import Analysis

ANALYSIS = Analysis(
    after="downstream",
    theme="predict",
    examples=(
        "python -m rbpx decide",
        "python -m rbpx decide flops=5e21 inference_tokens=1e13",
        "python -m rbpx decide next=3 flops=5e21 S=7e9 D=2e12",
        "python -m rbpx decide source=them S=7e9 D=2e12 --format html --output decision.html",
    ),
    title="What to train",
    sizes=3,
    draws=True,
    trainings=True,
    in_report=True,
    keys=(
        *("k", "S", "D", "ties", "resamples", "seed", "laws", "objective", "delta", "budgets", "last"),
        *("size_by", "flops", "inference_tokens", "inference_within", "next", "frontier", "outliers"),
    ),
    lacking="no family in store={store} has 3 trainings with known tokens on one text; import a table with a column D "
    "(python -m rbpx import FILE source=NAME), or measure with model.tokens=N",
)
