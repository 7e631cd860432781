"""Tables of the verbs that are no analysis."""
