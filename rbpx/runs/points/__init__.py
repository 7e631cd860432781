"""Computes the values, with bootstrap replicates, that laws are fitted to."""
