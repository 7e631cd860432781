"""One folder a question: groups of runs in, a frozen result with its rows, table, figure and section out."""
