"""What can be asked: files of conf/ and overrides in, a checked request and its grid of cells out."""
