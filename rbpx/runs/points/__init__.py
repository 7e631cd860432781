"""The values that laws are fitted to, with their replicates, for the runs of a group."""
