"""Reference pages from the code: a line `<!-- generated: NAME -->` of a page in, what the code says out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ext import architectures, bundled, citation, code, gallery, holdings, layers, notebook

PARTS: dict[str, Callable[[], str]] = {
    "verbs": code.verbs,
    "help": code.help_page,
    "keys": code.keys,
    "configurations": code.configurations,
    "families": code.families,
    "architectures": architectures.architectures,
    "datasets": code.datasets,
    "studies": code.studies,
    "relations": holdings.relations,
    "laws": holdings.laws,
    "distributions": holdings.distributions,
    "statuses": holdings.statuses,
    "questions": holdings.questions,
    "layers": layers.layers,
    "notebook": notebook.page,
    "gallery": gallery.page,
    "citation": citation.page,
    "bundled": bundled.page,
}
MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks each extension for this."""
    app.connect("source-read", lambda app, page, source: source.__setitem__(0, fill(source[0])))
    app.connect("env-get-outdated", lambda app, env, *changes: [p for p in env.found_docs if _is_marked(app, p)])
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _is_marked(app: Any, page: str) -> bool:
    return MARK.search(Path(app.env.doc2path(page)).read_text(encoding="utf-8")) is not None


def fill(text: str) -> str:
    """A page with its generated parts in place.

    Raises:
        KeyError: a part that does not exist.
    """
    return MARK.sub(lambda mark: PARTS[mark[1]](), text)
