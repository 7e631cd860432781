"""Screens, on which rich draws; with `rbpx.files.escapes` the only ways to a terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from rbpx.files.escapes import visible


class Screen(Console):
    """A console on which no text controls the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Renders a text; rich would drop some control characters."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders anything else so; only rich's own commands reach the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        """Lets `| head` close the pipe; rich would exit with 1."""
        raise BrokenPipeError
