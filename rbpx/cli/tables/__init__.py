"""Tables of the verbs that are not questions."""
