"""Fits a power law in size, with or without an offset, and finds its uncertainty."""
