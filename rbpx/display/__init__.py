"""Renders numbers as tables, figures, progress and sections of a page."""
