"""Numbers in; tables, charts, terminal plots, progress and sections of a page out."""
