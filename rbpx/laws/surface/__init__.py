"""Surfaces y(S, D) of trained runs: fits, the optimum of a budget, predictions and the next runs to train."""
