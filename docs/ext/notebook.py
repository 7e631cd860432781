"""The example notebook as a page: its cells and what they gave, pictures included."""

from pathlib import Path
from typing import Any

import nbformat

from ext.markdown import block

NOTEBOOK = Path(__file__).parents[1] / "example.ipynb"


def page() -> str:
    """The cells of the notebook in their order."""
    cells: Any = nbformat.read(NOTEBOOK, as_version=4).cells
    return "\n\n".join(_cell(cell) for cell in cells)


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
