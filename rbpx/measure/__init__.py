"""Measures the cells of a grid; each becomes a run in the store."""
