"""A source of text in, documents and windows of token ids out."""
