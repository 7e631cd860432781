"""Power laws in model size: the fit, with or without an irreducible loss, and its uncertainty."""
