"""Reads text sources, draws documents from them and cuts these into windows of token ids."""
