"""Forms that a law in size may have: fits, their weights, and averaged predictions."""
