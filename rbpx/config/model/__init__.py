"""Families of models, from files of conf/ and keys: sizes, checkpoints, and facts of their training."""
