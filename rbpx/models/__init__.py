"""A hub id or a folder in, a model on its devices with its head and its size out."""
