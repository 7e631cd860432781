"""The equations that y(S, D) may have: ln y, its derivatives and where a search starts."""
