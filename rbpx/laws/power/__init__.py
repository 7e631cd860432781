"""Sizes and a quantity in; a power law, or one with an offset, with its uncertainty out."""
