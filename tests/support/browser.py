"""A real browser for pages: what it complains of, what it asks of a network, and what keeps people from reading."""

import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Visit:
    """One look at the page: what it complained of, and what it asked of a network."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        size = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=size, color_scheme=scheme, offline=True, accept_downloads=True)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type != "log" else None)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def all_drawn(self) -> Any:
        self.page.wait_for_function("document.documentElement.dataset.drawn === 'all'", timeout=60_000)
        return self.page

    def blank(self) -> list[str]:
        """The places of figures without one."""
        places = "[...document.querySelectorAll('.plot')].filter(each => !each.querySelector('svg'))"
        return list(self.page.evaluate(f"{places}.map(each => each.dataset.of)"))

    def wide_tables(self) -> list[str]:
        """The tables that go on beyond their place, or have a cell that does, with all that is folded open."""
        self.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        self.page.wait_for_function("[...document.querySelectorAll('.scroll')].every(each => each.clientWidth)")
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        wide = "each => each.scrollWidth > each.clientWidth + 1"
        any_wide = f"of => [of, ...of.querySelectorAll('th, td')].some({wide})"
        names = f"filter({any_wide}).map(of => of.getAttribute('aria-labelledby'))"
        return list(self.page.evaluate(f"[...document.querySelectorAll('.scroll')].{names}"))


def violations(page: Any, context: dict[str, Any] | None = None) -> list[str]:
    """What an automated check of names, roles and contrast finds, with the first place of each."""
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe_playwright.Axe().run(page, context=context).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]} ({len(each['nodes'])})" for each in found]
