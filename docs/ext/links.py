"""Links that leave the site, listed beside it: they are not fetched, because a build has no network."""

from pathlib import Path
from typing import Any

from docutils import nodes


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks each extension for this."""
    app.connect("build-finished", _list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _list(app: Any, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    found: dict[str, set[str]] = {}
    for page in sorted(app.env.found_docs):
        for node in app.env.get_doctree(page).findall(nodes.reference):
            target = node.get("refuri", "")
            if target.startswith(("http://", "https://")):
                found.setdefault(target, set()).add(page)
    lines = [f"{target}  ({', '.join(sorted(pages))})\n" for target, pages in sorted(found.items())]
    (Path(app.outdir) / "external-links.txt").write_text("".join(lines), encoding="utf-8")
