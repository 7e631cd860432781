"""Runs a command line and returns its exit status."""
