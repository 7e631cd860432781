"""The version of rbpx, recorded with every run."""

__version__ = "0.5.0"
