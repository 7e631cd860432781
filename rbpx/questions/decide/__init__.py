"""What a store of runs says about the next one.

For a family whose runs have size and tokens: the best size and tokens of a budget with the loss of such a run, and
whether smaller runs foretold the largest; in a table what smaller models that train for longer lose. Details and pages
have the irreducible part, what a variant is worth beside the runs without one and from how much compute on, and the
runs to train next. All of it is over forms, bends and misfit, as predict S= D= is; intervals are 95 %. The status
`beyond` says that no run lies near a number.

flops= is the budget that is to be spent (by default ten times the most compute of the runs), budgets= asks for others,
inference_tokens= for the least of training and serving together that reaches the same loss (with inference_within=true
for the least loss where flops= pays for both), and S= with D= for what one run would show. It is about cross-entropy
unless laws= names something else. Of sweeps (see surface) frontier=true takes the best of the runs of each size and
as many tokens.

Named are up to three runs that narrow the loss of the best run most, by draws of the surface over forms, misfit and
scatter; a run that narrows by less than 2 % is not. next=N names N runs, also where size and tokens vary together, to
narrow something else: with S= and D= the prediction there, with budgets= the best S at these budgets, and else the
loss of the best run with ten times the compute of the runs. First come those that narrow most per FLOP, each given
those before it; flops= is then what all of them may cost together, and adds the best use of that, one large run or
several.

Runs outside what the others allow are named and left out (outliers=keep counts them).
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
