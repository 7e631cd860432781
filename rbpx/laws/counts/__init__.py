"""Fits the law of RBP_k to the numbers of sequences that passed and failed."""
