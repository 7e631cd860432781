"""Passes and failures of sequences in; the law of RBP_k behind them out."""
