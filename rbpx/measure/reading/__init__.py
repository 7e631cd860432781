"""Reads windows with a model: plans what is read once, divides it into batches, keeps what is finished."""
