"""The store: measured runs kept as immutable files, with SQL over them."""
