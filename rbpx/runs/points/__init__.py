"""The values that laws are fitted to, with their resamples, for the runs of a group."""
