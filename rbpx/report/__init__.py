"""The report (verb report) of a store as one page, Markdown, LaTeX or figures, for people new to rbpx."""
