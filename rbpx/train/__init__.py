"""Train a ladder of small models: text from installed packages, tokenizer, windows, models."""
