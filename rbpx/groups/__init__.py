"""A request in, groups of runs that belong together out, with the points that laws are fitted to."""
