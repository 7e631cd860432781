"""Counts of ranks in; their distribution, and the laws that follow from it, out."""
