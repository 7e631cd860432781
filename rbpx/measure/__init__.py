"""A grid of cells in, a run in the store for each out."""
