"""The verbs that are not questions, a file each: the help of a verb, and how it performs requests."""
