"""Results in, tables on a terminal out; one analysis a module."""
