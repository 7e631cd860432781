"""Fits, intervals and distributions, from numbers alone: no framework is imported."""
