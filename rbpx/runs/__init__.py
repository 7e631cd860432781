"""The groups of runs that a request selects, and the points of each group that laws are fitted to."""
