"""Fits surfaces y(S, D) to trained runs, and finds their optimum under a budget and the next runs to train."""
