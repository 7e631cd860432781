"""From installed packages to a ladder of small trained models: text, tokenizer, windows, models."""
