"""Estimates what a grid would cost without measuring it: tokens, FLOPs, memory, disk and time of each cell."""
