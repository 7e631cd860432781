"""The questions that rbpx answers from a store, one folder each, and the code that asks them and shows the answers."""
