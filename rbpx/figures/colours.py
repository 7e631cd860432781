"""How figures look: colours that colour-blind people tell apart, on light and on dark ground; all of it is here.

Every series has a shape and a dash of its own beside its colour. Each colour stands out from its ground by a contrast
of 3 or more (WCAG 2.2, 1.4.11). The hues are those of Okabe and Ito (2008), darkened or lightened to reach that.
"""

from typing import Any, Final

__all__ = ["DASHES", "GROUNDS", "MOST_SERIES", "SERIES", "SHAPES", "config"]

GROUNDS: Final = {"light": "#ffffff", "dark": "#161a20"}
_INKS: Final = {"light": "#1f2430", "dark": "#e6e9ef"}
_LINES: Final = {"light": "#dfe3ea", "dark": "#313846"}
SERIES: Final = {
    "light": ("#0067b0", "#c84e00", "#00795a", "#a8397f", "#6f5a00", "#2a2f3a", "#0a7f99", "#8a4fd0"),
    "dark": ("#5cb3ff", "#ff9157", "#3fd0a0", "#ec8fd4", "#e6c84a", "#f2f4f8", "#6fdcf0", "#c3a2ff"),
}
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "stroke")
DASHES: Final = ((1, 0), (7, 3), (2, 2), (8, 3, 2, 3), (4, 2), (10, 3), (1, 3), (6, 2, 1, 2, 1, 2))
MOST_SERIES: Final = 7  # told apart in one figure


def config(theme: str) -> dict[str, Any]:
    """The Vega-Lite configuration of a theme, "light" or "dark"."""
    ink, line = _INKS[theme], _LINES[theme]
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500}
    return {
        "background": None,
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif",
        "aria": False,  # the page names each figure and has its values beside it
        "view": {"stroke": None},
        "axis": {
            **text,
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "titlePadding": 8,
            "labelFlush": True,
        },
        "legend": {**text, "orient": "top", "symbolStrokeWidth": 2, "symbolSize": 70, "columnPadding": 14},
        "header": {**text},
        "text": {"color": ink},
        "rule": {"color": ink},
        "range": {"category": list(SERIES[theme]), "symbol": list(SHAPES)},
        "line": {"strokeWidth": 2, "color": SERIES[theme][0]},
        "point": {"filled": True, "size": 60, "opacity": 1, "color": SERIES[theme][0]},
        "area": {"opacity": 0.13, "line": False, "color": SERIES[theme][0]},
    }
