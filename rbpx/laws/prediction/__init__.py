"""Predictions of a law along one axis, their backtests and scores, and the statuses of the law."""
