"""Selects the runs of each fit."""
