"""One file per verb that is not a question: its help, and what it does with the requests of a command line."""
