"""Fits, intervals and distributions: numbers in, laws out, without any framework."""
