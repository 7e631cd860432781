"""Selects the runs that enter one fit."""
