"""The example notebook in the page that names it: its cells and what they gave, pictures included.

It alone is brought in by the build: as a file it is read where notebooks are.
"""

from pathlib import Path
from typing import Any

import nbformat

from ext.markdown import block

NOTEBOOK = Path(__file__).parents[1] / "example.ipynb"
MARK = "<!-- cells of example.ipynb -->"


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks each extension for this."""
    app.connect("source-read", lambda app, page, source: source.__setitem__(0, with_cells(source[0])))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def with_cells(page: str) -> str:
    """A page with the cells of the notebook in their order, but for its title, where it marks them."""
    if MARK not in page:
        return page
    title, *cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return page.replace(MARK, "\n\n".join([title.source.partition("\n")[2], *(_cell(cell) for cell in cells)]))


def _cell(cell: Any) -> str:
    if cell.cell_type == "markdown":
        return str(cell.source)
    return "\n\n".join([block(cell.source, "python"), *(_output(output) for output in cell.outputs)])


def _output(output: Any) -> str:
    if output.output_type == "stream":
        return block(output.text)
    data = output.data
    if "image/svg+xml" in data:
        return f"```{{raw}} html\n<figure class='drawn'>{data['image/svg+xml']}</figure>\n```"
    if "text/html" in data:
        return f"```{{raw}} html\n<div class='frame'>{data['text/html']}</div>\n```"
    return block(data["text/plain"])
