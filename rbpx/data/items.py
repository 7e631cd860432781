"""Makes the items of a task from rows: contexts and targets, and their documents.

Each (context, target or choice) pair is a document, of which only the target is scored.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rbpx.config.text.items import CHOICE, FUNCTIONS, Place, Task, Template
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible_line
from rbpx.spelling import typed

ASSISTANT: Final = "assistant"  # the role whose messages are answers


@dataclass(frozen=True)
class Part:
    """The part of an item that a document is.

    Attributes:
        item: index of the item in the drawn sample.
        choice: None for an item without choices.
        n_context: characters of the context, at the beginning of the document.
        n_characters: of the target or choice in the data, without its separator from the context.
        n_answer_bytes: of the same, UTF-8.
        description: text before the examples and the context.
    """

    item: int
    choice: int | None
    correct: bool | None
    n_context: int
    n_characters: int
    n_answer_bytes: int
    category: str | None = None
    domain: str | None = None
    description: str = ""

    @property
    def is_true(self) -> bool:
        """Whether its target is the right text, not a wrong choice."""
        return self.correct is not False

    def identity(self) -> tuple[Any, ...]:
        """What a run stores of it; the description is part of the text."""
        return (
            *(self.item, self.choice, self.correct, self.n_context, self.n_characters, self.n_answer_bytes),
            *(self.category, self.domain),
        )


@dataclass(frozen=True)
class Item:
    """One row of a task.

    Attributes:
        pairs: context and target of each choice; one pair without choices.
        answers: target or choice of each pair, as in the data.
        right: index of the right choice.
    """

    pairs: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]
    right: int | None
    category: str | None
    domain: str | None
    description: str

    def part(self, item: int, choice: int) -> Part:
        """The `Part` of the document of one of its pairs."""
        answer = self.answers[choice]
        return Part(
            item=item,
            choice=None if self.right is None else choice,
            correct=None if self.right is None else choice == self.right,
            n_context=len(self.pairs[choice][0]),
            n_characters=len(answer),
            n_answer_bytes=len(answer.encode("utf-8", "surrogatepass")),
            category=self.category,
            domain=self.domain,
            description=self.description,
        )


def in_order(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(item, choice) of the documents of items, the true ones first, so that their number is their item's."""
    true = [(at, item.right or 0) for at, item in enumerate(items)]
    wrong = [(at, n) for at, item in enumerate(items) for n in range(len(item.pairs)) if n != (item.right or 0)]
    return true + wrong


def item_of(row: Any, task: Task, at: Callable[[], str]) -> Item:
    """The item of one row.

    Raises:
        RbpxError: the row lacks a column or has a wrong value; a target is empty, or no choice is right.
    """
    reader = _RowReader(row, task, at)
    if task.choices is None:
        assert task.target is not None, "a task has a target or choices"
        right, contexts = None, [reader.text(task.context, "template")]
        targets = [reader.text(task.target, "target")]
    else:
        choices = reader.choices()
        right, contexts = reader.right(len(choices)), [reader.text(task.context, "template", each) for each in choices]
        targets = choices if task.target is None else [reader.text(task.target, "target", each) for each in choices]
    for n, target in enumerate(targets):
        if not target:
            which = "target" if right is None else f"choice {n}"
            raise RbpxError(f"{at()} has an empty {which}, so there is nothing to score; leave the row out, or fill it")
    category = None if task.category is None else reader.plain(task.category, "category")
    return Item(
        pairs=tuple((context, task.delimiter + target) for context, target in zip(contexts, targets, strict=True)),
        answers=tuple(targets),
        right=right,
        category=category,
        domain=None if category is None else task.domains.get(category),
        description=reader.text(task.description, "description", clean=False),
    )


@dataclass(frozen=True)
class _RowReader:
    row: Any
    task: Task
    at: Callable[[], str]

    def text(self, template: Template, key: str, choice: str | None = None, clean: bool = True) -> str:
        pieces = []
        for part in template:
            if isinstance(part, str):
                pieces.append(part)
            elif choice is not None and part.steps == (CHOICE,):
                pieces.append(part.apply(choice))
            else:
                pieces.append(part.apply(self.plain(part, key)))
        text = "".join(pieces)
        return FUNCTIONS[self.task.clean](text) if clean and self.task.clean is not None else text

    def plain(self, place: Place, key: str) -> str:
        value = self.value(place, key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise RbpxError(
                f"{self.at()} has {str(value)[:40]} in '{place.name}' (dataset.{key}), not a text; name a column of "
                "texts, or give the row one"
            )
        return value

    def value(self, place: Place, key: str) -> Any:
        return value_in(self.row, place.steps, place.name, key, self.at)

    def choices(self) -> list[str]:
        task = self.task
        if isinstance(task.choices, Place):
            listed = self.value(task.choices, "choices")
            if not isinstance(listed, list) or len(listed) < 2 or not all(isinstance(each, str) for each in listed):
                raise RbpxError(
                    f"{self.at()} has {str(listed)[:60]} in '{task.choices.name}' (dataset.choices), not a list of two "
                    "texts or more"
                )
            choices = listed
        else:
            assert task.choices is not None, "choices are read where there are some"
            choices = self._given(task.choices)
        return choices if task.clean is None else [FUNCTIONS[task.clean](choice) for choice in choices]

    def _given(self, templates: Sequence[Template]) -> list[str]:
        """Columns, all of them if one is, or else templates and plain texts."""
        plain = [template[0] if len(template) == 1 and isinstance(template[0], str) else None for template in templates]
        named = [name in self.row if name is not None and isinstance(self.row, dict) else False for name in plain]
        if any(named):
            return [self.plain(Place(str(name), (str(name),), ()), "choices") for name in plain]
        return [self.text(template, "choices", clean=False) for template in templates]

    def right(self, n_choices: int) -> int:
        place, given = self.task.right, self.task.labels
        assert place is not None, "choices come with what is right"
        value = self.value(place, "right")
        labels = self.value(given, "labels") if isinstance(given, Place) else given
        try:
            if labels is None:
                index = int(value)  # also booleans, of yes/no questions
            else:
                index = (labels if isinstance(labels, list | tuple) else ()).index(str(value).strip())
        except (TypeError, ValueError):
            index = -1
        if not 0 <= index < n_choices:
            of = "" if labels is None else f" by the labels {labels}"
            raise RbpxError(
                f"{self.at()} has {str(value)[:40]!r} in '{place.name}' (dataset.right), which is none of its "
                f"{n_choices} choices{of}; give the number of a choice, counted from 0, or a column or list of the "
                f"choices' labels, as in {typed(keys={'dataset.labels': ['A', 'B', 'C', 'D']})}"
            )
        return index


def answers_in(row: Any, task: Task, at: Callable[[], str]) -> Iterator[tuple[int, Item]]:
    """The number in its conversation, from 1, and the item of each message of the assistant in a row.

    The context is the messages before it, as JSON.

    Raises:
        RbpxError: the column is no list of messages with a role and a text, or none of them is the assistant's.
    """
    assert task.messages is not None, "the rows of this task are conversations"
    column = f"'{task.messages.name}' (dataset.messages)"
    listed = value_in(row, task.messages.steps, task.messages.name, "messages", at)
    turns = []
    for n, message in enumerate(listed if isinstance(listed, list) else [listed], 1):
        given = message if isinstance(message, dict) else {}
        role, text = given.get("role"), given.get("content")
        if not isinstance(role, str) or not isinstance(text, str) or not (text or role != ASSISTANT):
            raise RbpxError(
                f"{at()} has {str(message)[:60]} as message {n} of {column}, not a record of a role and a content that "
                "is text; leave the row out, or give it one"
            )
        turns.append((role, text))
    if all(role != ASSISTANT for role, _ in turns):
        raise RbpxError(f"{at()} has no message of the role {ASSISTANT} in {column}, so there is nothing to score")
    for n, (role, text) in enumerate(turns):
        if role == ASSISTANT:
            before = json.dumps(turns[:n], ensure_ascii=False)
            yield n + 1, Item(((before, text),), (text,), right=None, category=None, domain=None, description="")


def value_in(row: Any, steps: Sequence[str | int], name: str, key: str, at: Callable[[], str]) -> Any:
    """The value at a path into the records and lists of a row; raises RbpxError where it has no such path."""
    node = row
    for step in steps:
        if isinstance(node, dict) and step in node:
            node = node[step]
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            values = f"it has {len(node)} values" if isinstance(node, list) else "it is not a record"
            has = f"it has: {visible_line(', '.join(map(str, node)))}" if isinstance(node, dict) else values
            raise RbpxError(f"{at()} has no column '{name}' for dataset.{key} ({has}); name one of these there")
    return node
