"""Stores in buckets and on hubs: what is there, what has to be sent, what was fetched."""
