"""Points of several families or of two trainings in; one law of all, or how much one is ahead, out."""
