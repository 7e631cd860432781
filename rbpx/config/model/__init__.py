"""Families of models as files of conf/ and keys give them: sizes, checkpoints, what is known of their training."""
