"""CITATION.cff as BibTeX: the software, and the papers whose laws it measures."""

from pathlib import Path
from typing import Any

import yaml

from ext.markdown import block

FILE = Path(__file__).parents[2] / "CITATION.cff"


def page() -> str:
    """The entries."""
    about: Any = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    entries = [_entry("software", about["title"], about, {"version": about["version"]})]
    for paper in about["references"]:
        number = paper["identifiers"][0]["value"].removeprefix("arXiv:")
        entries.append(_entry("article", f"arXiv{number}", paper, {"eprint": number, "archivePrefix": "arXiv"}))
    return block("\n\n".join(entries), "bibtex")


def _entry(kind: str, key: str, about: dict[str, Any], more: dict[str, str]) -> str:
    authors = " and ".join("{" + author["name"] + "}" for author in about["authors"])
    fields = {"title": "{" + about["title"] + "}", "author": authors, **more}
    if "url" in about:
        fields["url"] = about["url"]
    return f"@{kind}{{{key},\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items()) + "}"
