"""Predictions of a law, their backtests and scores, and the statuses of the law."""
