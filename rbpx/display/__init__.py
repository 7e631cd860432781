"""Renders numbers as tables, charts, terminal plots, progress and sections of a page."""
