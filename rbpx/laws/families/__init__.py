"""Fits one law to several families at once, or says how far one training is ahead of another."""
