"""Equations as MathML, which browsers draw themselves: LaTeX in, no script, no font and no network out."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

_APPLY, _THIN = "<mo>&ApplyFunction;</mo>", '<mspace width="0.17em"/>'  # browsers leave no room for the former


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks each extension for this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _drawn(equation: str, as_block: bool = False) -> str:
    return str(tex2mathml(equation, as_block=as_block)).replace(_APPLY, _THIN)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_drawn(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{_drawn(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode
