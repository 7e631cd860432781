"""Small plots for a terminal: results of analyses in, lines of characters out."""
