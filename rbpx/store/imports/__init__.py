"""Other people's results in: their columns, rows and faults; observations out."""
