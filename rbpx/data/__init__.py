"""Data: reads sources of text, draws documents from them and cuts these into windows of token ids."""
