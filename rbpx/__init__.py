"""Relative-Based Probability: scaling laws of language models, measured token by token (arXiv 2510.20387)."""

__version__ = "0.1.0"
