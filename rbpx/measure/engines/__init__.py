"""Measures with an engine other than rbpx, asked over HTTP."""
