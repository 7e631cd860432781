"""Reads users' tables, writes files atomically, and computes digests."""
