"""The questions that rbpx answers from a store, a folder each, and what asks them and shows their answers."""
