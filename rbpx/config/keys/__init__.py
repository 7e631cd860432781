"""Declares the keys that users type, each once; a verb lists the keys it takes."""
