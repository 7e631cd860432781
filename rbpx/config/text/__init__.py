"""Texts and tasks as files of conf/ and keys give them: where from, which rows, how they are read."""
