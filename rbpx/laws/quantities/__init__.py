"""Quantities with a law in S, one module each: adding `LAW.py` with a `QUANTITY` makes `laws=[LAW]` available."""
