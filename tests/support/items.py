"""Items of a task as documents: each choice behind the context of its question."""

from collections.abc import Sequence

from rbpx.data.corpus import Document
from rbpx.data.items import Part

CHOICES = (" the one who waits", " the letters", " nothing", " rope", " the one who writes them", " a")


def documents(questions: Sequence[str], choices: Sequence[str] = CHOICES, before: str = "") -> list[Document]:
    """A document of each choice of each question; the second one is right."""
    pairs = [(item, n, before + q, choice) for item, q in enumerate(questions) for n, choice in enumerate(choices)]
    return [
        Document(at, str(item), context + choice, Part(item, n, n == 1, len(context), len(choice), len(choice)))
        for at, (item, n, context, choice) in enumerate(pairs)
    ]
