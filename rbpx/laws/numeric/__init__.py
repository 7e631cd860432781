"""Arrays and functions in; logarithms, roots, maxima and least squares out, those of many laws side by side."""
