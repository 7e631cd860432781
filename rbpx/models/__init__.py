"""Loads a model from a hub id or a folder onto its devices, with its tokenizer, its output head and its size."""
