"""How the documentation is built: Sphinx, pages in MyST, reference pages from the code, equations as MathML."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import rbpx  # noqa: E402, from the checkout

project = "rbpx"
author = "The rbpx authors"
copyright = "the rbpx authors"
release = version = rbpx.__version__
extensions = ["myst_parser", "ext.contents", "ext.mathml", "ext.links"]
exclude_patterns = ["_build", "ext", "examples"]
smartquotes = False
html_theme = "furo"
html_title = "rbpx"
html_static_path = ["_static"]
html_css_files = ["rbpx.css"]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
pygments_style, pygments_dark_style = "friendly", "github-dark"
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline", "fieldlist"]
myst_heading_anchors = 3
