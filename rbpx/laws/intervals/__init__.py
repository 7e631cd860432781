"""95 % intervals by the document bootstrap and Student's t, and tests of the scatter about a law."""
