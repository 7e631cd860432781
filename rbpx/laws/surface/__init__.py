"""Runs of several sizes and training lengths in; y(S, D), its optimum under a budget, and what to train next out."""
