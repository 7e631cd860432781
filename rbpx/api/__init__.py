"""The same analyses for a notebook: a store and keys in, answers as values out."""
