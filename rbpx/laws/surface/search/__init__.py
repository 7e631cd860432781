"""Starts and points in; the least objective of a surface out, many searches at once."""
