"""rbpx.duckdb, the index over the files of a store."""
