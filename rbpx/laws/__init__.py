"""Numbers in, laws out: fits, intervals and distributions; knows no framework."""
