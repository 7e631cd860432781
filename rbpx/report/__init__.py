"""The report (verb report): a store in; one page, Markdown, LaTeX or figures out, for people new to rbpx."""
