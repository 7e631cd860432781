"""Reading users' tables, writing files whole, digests: a path in, rows or a file out."""
