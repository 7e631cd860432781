"""The keys that users type, each declared once; a verb lists those that it has."""
