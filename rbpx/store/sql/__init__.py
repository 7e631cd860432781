"""SQL over a store: relations, queries, their limits."""
