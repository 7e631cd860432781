"""Estimates tokens, FLOPs, memory, disk and time of each cell of a grid without measuring it."""
