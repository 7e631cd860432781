"""The files of a store: where each lies, how it is written whole, and what is gone."""
