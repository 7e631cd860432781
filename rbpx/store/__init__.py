"""The store: runs in as immutable files, SQL over them out."""
