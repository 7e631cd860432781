"""A grid in, what it would cost out; nothing is measured."""
