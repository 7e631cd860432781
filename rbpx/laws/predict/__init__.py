"""A law in; predictions, backtests, their scores and the verdict on it out."""
