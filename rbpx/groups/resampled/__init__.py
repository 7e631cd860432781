"""The documents of a group in; how often each is drawn, and means over those drawn, out."""
