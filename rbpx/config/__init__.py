"""Configuration: the typed schema of conf/, the checked request that overrides make, and its grid of cells."""
