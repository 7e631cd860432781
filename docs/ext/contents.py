"""The side bar of the site: the pages that index.md links to, under its headings."""

import re
from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks each extension for this."""
    app.connect("source-read", lambda app, page, source: source.__setitem__(0, _with_trees(page, source[0])))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages(index: str) -> dict[str, list[str]]:
    """The pages below each heading of the index, without their suffix."""
    parts = re.split(r"^## (.+)\n", index, flags=re.MULTILINE)
    return {head: re.findall(r"\]\(([\w/-]+)\.md\)", text) for head, text in zip(parts[1::2], parts[2::2], strict=True)}


def _with_trees(page: str, source: str) -> str:
    if page != "index":
        return source
    trees = (
        f"```{{toctree}}\n:hidden:\n:caption: {head}\n\n" + "\n".join(listed) + "\n```"
        for head, listed in pages(source).items()
    )
    return "\n\n".join([source, *trees])
