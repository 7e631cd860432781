"""The look of figures: colours that colour-blind readers can distinguish, on light and dark ground.

Every series also has its own shape and dash. Each colour has a contrast of at least 3 to its ground (WCAG 2.2, 1.4.11).
The hues are those of Okabe and Ito (2008), made darker or lighter.
"""

from typing import Any, Final

GROUNDS: Final = {"light": "#ffffff", "dark": "#161a20"}
INKS: Final = {"light": "#1f2430", "dark": "#e6e9ef"}
LINES: Final = {"light": "#dfe3ea", "dark": "#313846"}
SERIES: Final = {
    "light": ("#0067b0", "#c84e00", "#00795a", "#a8397f", "#6f5a00", "#2a2f3a", "#0a7f99", "#8a4fd0"),
    "dark": ("#5cb3ff", "#ff9157", "#3fd0a0", "#ec8fd4", "#e6c84a", "#f2f4f8", "#6fdcf0", "#c3a2ff"),
}
STEPS: Final = {
    "light": ("#2d0b59", "#4b2a8c", "#3b5aa3", "#1f7f94", "#1f8f5f", "#6f9a00"),
    "dark": ("#8f6bdc", "#7f86e8", "#5fa8e0", "#45c4c0", "#6fda84", "#d8e84a"),
}
"""Colours of the steps of a quantity, ever lighter."""
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "stroke")
DASHES: Final = ((1, 0), (7, 3), (2, 2), (8, 3, 2, 3), (4, 2), (10, 3), (1, 3), (6, 2, 1, 2, 1, 2))
MOST_SERIES: Final = 7  # in one figure, so that they can be distinguished


def variables(theme: str) -> dict[str, str]:
    """The colours of a theme, light or dark, by their names in a page's style."""
    of = {"series": SERIES[theme], "step": STEPS[theme]}
    named = {f"--{kind}-{at}": colour for kind, colours in of.items() for at, colour in enumerate(colours, 1)}
    return {"--ground": GROUNDS[theme], "--ink": INKS[theme], "--line": LINES[theme], **named}


def config(theme: str | None, font_px: float = 12, legend: str = "top") -> dict[str, Any]:
    """The Vega-Lite configuration of a theme; for None that of a page, whose style sets colours."""
    if theme is None:
        ink, line = "var(--ink)", "var(--line)"
        series = [f"var(--series-{at + 1})" for at in range(len(SERIES["light"]))]
        steps = [f"var(--step-{at + 1})" for at in range(len(STEPS["light"]))]
    else:
        ink, line, series, steps = INKS[theme], LINES[theme], list(SERIES[theme]), list(STEPS[theme])
    sizes = {"labelFontSize": font_px, "titleFontSize": font_px}
    text = {"labelColor": ink, "titleColor": ink, **sizes, "titleFontWeight": 500}
    scale = font_px / 12  # of marks, which follow the text
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
            "labelSeparation": 8,
        },
        "legend": {
            **text,
            **({"disable": True} if legend == "none" else {"orient": legend}),
            "labelLimit": 0,  # a name is never cut
            "symbolStrokeWidth": 0,
            "symbolSize": 70 * scale**2,
            "columnPadding": 14 * scale,
            "offset": 10 * scale,
            "layout": {side: {"direction": "vertical", "anchor": "start"} for side in ("top", "bottom")},
        },
        "header": {**text},
        "text": {"color": ink, "fontSize": font_px},
        "rule": {"color": ink},
        "range": {"category": series, "ordinal": steps, "symbol": list(SHAPES)},
        "line": {"strokeWidth": 2 * scale, "color": series[0]},
        "point": {"filled": True, "size": 60 * scale**2, "opacity": 1, "color": series[0]},
        "area": {"line": False, "color": series[0]},
    }
