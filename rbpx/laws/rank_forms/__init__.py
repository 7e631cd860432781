"""Distributions of the ranks that may close the laws, a file each; what a file gives as FORM is a row of `closure`."""
