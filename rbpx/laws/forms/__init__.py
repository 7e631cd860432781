"""Forms that a law may have: fits, their weights, and averaged predictions.

Along one axis a grid over the nonlinear parameters is small (`candidates`); in size and tokens forms are linearised
about their optima (`linearised`), which along one axis would score .100 where the grid scores .056 (interval score of
ln y), in 13.4 CPU s for 1.3.
"""
