"""The Python interface: the questions of the command line as methods of an open store, with answers as values."""
