"""95 % intervals by the bootstrap of documents and by Student's t, and tests of what scatters about a law."""
