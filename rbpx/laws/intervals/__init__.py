"""Values with their resamples in; 95 % intervals, and tests of what scatters about a law, out."""
