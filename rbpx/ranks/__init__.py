"""Exact ranks of targets from hidden states and a head; imports no framework but torch."""
