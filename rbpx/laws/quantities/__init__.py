"""Quantities of which a law in S is fitted, a module each: `LAW.py` with a `QUANTITY` makes `laws=[LAW]` a choice."""
