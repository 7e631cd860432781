"""Selects groups of runs by a request and computes the points of each group for laws."""
