"""How the documentation is built: Sphinx, pages in MyST, reference pages from the code, equations as MathML."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import rbpx  # noqa: E402, from the checkout

project = "rbpx"
author = "The rbpx authors"
copyright = "the rbpx authors"
release = version = rbpx.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "ext.contents",
    "ext.notebook",
    "ext.mathml",
    "ext.links",
]
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
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
napoleon_google_docstring, napoleon_numpy_docstring, napoleon_use_ivar = True, False, True
# Types of libraries, whose own sites could only be asked with a network, and of our insides.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|pa|pd|alt|pyarrow|pandas|altair|collections|typing|pathlib|rbpx|npt|Unpack)\b.*")
]
nitpick_ignore_regex += [
    ("py:.*", r"(Result|Path|Record|Sequence|Mapping|Group|Run|Status|Any|Method|Evidence|Choice|Measured)\b.*")
]
nitpick_ignore_regex += [
    ("py:class", r"(CommandLine|KLaws|Regimes|Emergences|Gaps|Choices|Ranks|Entropies|GroupUnits|Improvement)")
]
nitpick_ignore_regex += [("py:class", r"(OutcomesResult|TokenwiseResult|Foresights|Laws|Law|ArrayLike|Floats)")]
