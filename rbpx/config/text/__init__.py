"""Texts and tasks, from files of conf/ and keys: source, rows, and how documents are read."""
