"""Predictions of a law, their backtests and scores, and the verdict on the law."""
