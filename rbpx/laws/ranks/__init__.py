"""Fits distributions to the counts of the ranks, and derives the laws that follow from them."""
