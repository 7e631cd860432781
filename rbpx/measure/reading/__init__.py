"""Reads windows with a model: plans what is read once, forms batches, stores what is finished."""
