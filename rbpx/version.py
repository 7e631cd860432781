"""The version of rbpx, kept with every run."""

__version__ = "0.4.0"
