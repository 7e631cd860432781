"""Series in, small plots in characters for a terminal out."""
