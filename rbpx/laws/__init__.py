"""One law a file: plain arrays in, a frozen fit with a status out."""
