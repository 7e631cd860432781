"""How the documentation is built: Sphinx, pages in MyST, of which index.md links to each."""

import re
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

import rbpx  # noqa: E402, from the checkout

project = "rbpx"
author = "The rbpx authors"
copyright = "the rbpx authors"
release = version = rbpx.__version__
extensions = ["myst_parser"]
exclude_patterns = ["_build", "ext", "examples"]
smartquotes = False
html_theme = "furo"
html_title = "rbpx"
html_static_path = ["_static"]
html_css_files = ["rbpx.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style, pygments_dark_style = "friendly", "github-dark"
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline", "fieldlist"]
myst_heading_anchors = 3


def setup(app: Any) -> None:
    """Give the side bar the pages that index.md links to, under its headings; a code host shows no toctree."""

    def with_trees(app: Any, page: str, source: list[str]) -> None:
        parts = re.split(r"^## (.+)\n", source[0], flags=re.MULTILINE) if page == "index" else []
        for head, text in zip(parts[1::2], parts[2::2], strict=True):
            listed = "\n".join(re.findall(r"\]\(([\w/-]+)\.md\)", text))
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {head}\n\n{listed}\n```"

    app.connect("source-read", with_trees)
