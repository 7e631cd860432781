"""95 % intervals from resampled documents, and tests of what scatters about a law."""
