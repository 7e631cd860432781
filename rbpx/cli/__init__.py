"""A command line in, an exit status out."""
