"""The analyses: a request and the store in, frozen results with the rows they leave in the store out; one a module."""
