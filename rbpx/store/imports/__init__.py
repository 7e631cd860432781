"""Imports other people's results: reads their columns and rows, reports faults, returns observations."""
