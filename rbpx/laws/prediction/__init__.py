"""Predictions of a law along one axis, their backtests and scores, and the statuses of the law.

They average forms on a grid, which scores .056 where the average of a surface would score .100 (`rbpx.laws.forms`).
"""
