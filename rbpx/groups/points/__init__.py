"""The runs of a group in; the values that laws are fitted to, with their resamples, out."""
