"""Trains a ladder of small models on text from installed packages: tokenizer, windows, models."""
