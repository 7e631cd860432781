"""A request in; the runs that enter one fit out."""
