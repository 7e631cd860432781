r"""The keys of a dataset that turn its rows into items.

Templates are text with columns in braces, such as `Q: {question}\nA:`. A column is named by its path,
`{choices.text[0]}`; functions behind a colon change its text in turn, `{question:strip}`. `{{` and `}}` are braces.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from string import Formatter
from typing import Any, Final, TypeVar

from rbpx.config.keys.key import as_list, key, name_of, text_or_list
from rbpx.config.options import FewshotDraw, Joined
from rbpx.errors import RbpxError

T = TypeVar("T")

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_BRACKETS: Final = re.compile(r"\[.*?\]")


def _without_brackets(text: str) -> str:
    """Removes the marks of HellaSwag's WikiHow articles; a title begins a sentence."""
    return _BRACKETS.sub("", text.strip().replace(" [title]", ". ")).replace("  ", " ")


FUNCTIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "strip": str.strip,
    "capitalize": str.capitalize,
    "words": lambda text: text.replace("_", " "),  # of a name with underscores
    "but_last_word": lambda text: text.rpartition(" ")[0],  # words are what single spaces divide
    "last_word": lambda text: text.rpartition(" ")[2],
    "before_blank": lambda text: text.partition("_")[0],
    "after_blank": lambda text: text.partition("_")[2].strip(),
    "without_brackets": _without_brackets,
}


@dataclass(frozen=True)
class Place:
    """A column in a template: the steps to its value, and the functions that change its text."""

    name: str
    steps: tuple[str | int, ...]
    functions: tuple[str, ...]

    def apply(self, text: str) -> str:
        """Applies the functions to a text."""
        for name in self.functions:
            text = FUNCTIONS[name](text)
        return text


Template = tuple[str | Place, ...]


def parse(key: str, template: str) -> Template:
    """Splits a template into text and columns; raises RbpxError for no template."""
    parts: list[str | Place] = []
    try:
        fields = list(Formatter().parse(template.replace("\\n", "\n")))
    except ValueError as problem:
        raise RbpxError(
            f"{key}={template!r} is not a template: {problem}; name columns as {{column}}, and write {{{{ for a brace"
        ) from None
    for text, name, spec, conversion in fields:
        if text:
            parts.append(text)
        if name is not None:
            parts.append(_place(key, template, name if conversion is None else f"{name}!{conversion}", spec or ""))
    return tuple(parts)


def _place(key: str, template: str, name: str, spec: str = "") -> Place:
    found = list(_STEP.finditer(name))
    functions = tuple(each for each in spec.split(":") if each)
    is_path = bool(found) and "".join(match[0] for match in found) == name and found[0][1] is not None
    if not is_path or not FUNCTIONS.keys() >= {*functions}:
        raise RbpxError(
            f"{key}={template!r} names {{{name}}}, which is no path of a column, or a function that is none of "
            f"{', '.join(FUNCTIONS)}; write {{question}}, {{choices.text[0]}} or {{question:strip}}"
        )
    steps = tuple(match[1] if match[1] is not None else int(match[2]) for match in found)
    return Place(name, steps, functions)


def _column(key: str, path: Any) -> Place:
    return _place(f"dataset.{key}", path, name_of(f"dataset.{key}", path))


FEWSHOT_SEED: Final = 42
FEWSHOT_BORDER: Final = "\n\n"  # between examples


@dataclass(frozen=True)
class Task:
    """How rows become items, as `ItemKeys` say it. Only what follows the context is scored.

    Attributes:
        target: what is scored, if there are no choices; else what follows each choice that stands in the context.
        labels: None if `right` counts from 0.
        domains: category -> its domain.
    """

    context: Template
    target: Template | None
    choices: Place | tuple[Template, ...] | None
    right: Place | None
    labels: Place | tuple[str, ...] | None
    delimiter: str = ""
    description: Template = ()
    clean: str | None = None
    category: Place | None = None
    domains: dict[str, str] = field(default_factory=dict)
    messages: Place | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns of a row that items are made of."""
        choices = self.choices if isinstance(self.choices, tuple) else ((self.choices,),)
        parts = chain(self.context, self.target or (), self.description, *choices)
        alone = (self.right, self.labels, self.category, self.messages)
        places = [each for each in (*parts, *alone) if isinstance(each, Place)]
        return tuple(name for name in dict.fromkeys(str(place.steps[0]) for place in places) if name != CHOICE)


OF_ITEMS: Final = ("context", "template", "clean", "category", "domains", "fewshot_path", "fewshot", "joined")
CHOICE: Final = "choice"  # stands for the text of the choice in a template, where each choice has its own context


@dataclass
class ItemKeys:
    r"""What makes items of rows; without a target or choices, a row is a text all of which is scored.

    Attributes:
        context: columns that are read before the target, joined by newlines.
        template: of the context, such as "Q: {question}\nA:"; {choice} in it gives each choice a context.
        target: the column that is scored, or a template of it.
        messages: the column of a conversation, a list of records of role and content: each message of the assistant is
            scored after those before it, as model.chat=true renders them.
        choices: the column that holds a list of choices, or a list of columns, templates, or choices.
        right: the column that says which choice is right: its number from 0, or its label.
        labels: of the choices in `right`: a column that holds a list, or the labels themselves.
        delimiter: between context and target; most tasks have a space there.
        description: template of the text before the examples and the context.
        clean: a function of templates for context, choices and target.
        category: the column of an item's subject; slices=category compares them.
        domains: domain -> its categories; slices=domain compares them.
        fewshot: examples, with their right answers, before each context.
        fewshot_split: of the examples; by default the dataset's own, without the item itself.
        fewshot_path: a file of the examples.
        fewshot_seed: null takes the first ones.
        fewshot_draw: whether items (of a category) share their examples (fixed) or each has its own (item).
        chance: success of guessing, for imported results of this task.
    """

    context: Any = text_or_list()
    template: str | None = None
    target: str | None = key(
        None,
        "rows are items, and only what follows dataset.context='[question]' is scored, or follows "
        "'dataset.template=\"Q: {question}\\nA:\"'; or dataset.choices=COLUMN dataset.right=COLUMN, of which `items` "
        "shows accuracies; dataset.fewshot=5 puts examples in front",
        shown="COLUMN",
    )
    messages: str | None = None
    choices: Any = text_or_list()
    right: str | None = None
    labels: Any = text_or_list()
    delimiter: str = ""
    description: str = ""
    clean: str | None = None
    category: str | None = None
    domains: Any = None  # a dict; Hydra adds no keys to one that is typed
    fewshot: int = 0
    fewshot_split: Any = text_or_list()
    fewshot_path: str | None = None
    fewshot_seed: int | None = FEWSHOT_SEED
    fewshot_draw: FewshotDraw = FewshotDraw.fixed
    joined: Joined = key(
        Joined.skip,
        "or refuse: items whose target the tokenizer joins to the context are left out and counted",
        shown="skip",
    )
    chance: float | None = None

    @property
    def has_items(self) -> bool:
        """Whether rows are items."""
        return (self.target, self.choices, self.messages) != (None, None, None)

    def _task(self) -> Task | None:
        """How rows become items, None if they are texts; raises RbpxError for wrong or missing keys."""
        if not self.has_items:
            return None
        context = self._context()
        choices = _column_or_list("choices", self.choices, partial(parse, "dataset.choices"))
        if isinstance(choices, tuple) and len(choices) < 2:
            raise RbpxError(f"dataset.choices={self.choices} is one choice; give two, or the column of their list")
        if choices is not None and self.right is None:
            raise RbpxError(f"dataset.choices={self.choices} needs dataset.right=COLUMN, which says which one is right")
        in_context = any(isinstance(part, Place) and part.steps[0] == CHOICE for part in context)
        if choices is not None and in_context != (self.target is not None):
            raise RbpxError(
                "dataset.target beside dataset.choices is what follows a choice that stands in its context, as "
                f"{{{CHOICE}}} in dataset.template; give both, or neither"
            )
        if self.clean is not None and self.clean not in FUNCTIONS:
            raise RbpxError(f"dataset.clean={self.clean} is unknown; known: {', '.join(FUNCTIONS)}")
        if self.fewshot < 0 or (self.fewshot_seed is None and self.fewshot_draw is FewshotDraw.item):
            raise RbpxError(
                f"dataset.fewshot={self.fewshot} draws none; give a number from 0, and dataset.fewshot_draw=item a seed"
            )
        return Task(
            context=context,
            target=None if self.target is None else self._target(self.target),
            choices=choices,
            right=None if self.right is None else _column("right", self.right),
            labels=_column_or_list("labels", self.labels, str),
            delimiter=self.delimiter.replace("\\n", "\n"),
            description=parse("dataset.description", self.description),
            clean=self.clean,
            category=None if self.category is None else _column("category", self.category),
            domains={str(each): domain for domain, of in (self.domains or {}).items() for each in as_list(of)},
            messages=None if self.messages is None else _column("messages", self.messages),
        )

    def _target(self, target: str) -> Template:
        return parse("dataset.target", target) if "{" in target else (_column("target", target),)

    def _context(self) -> Template:
        if self.template is not None:
            return parse("dataset.template", self.template)
        columns = [] if self.context is None else as_list(self.context)
        return tuple(part for name in columns for part in ("\n", _column("context", name)))[1:]


def _column_or_list(key: str, value: Any, read: Callable[[str], T]) -> Place | tuple[T, ...] | None:
    if value is None or isinstance(value, str):
        return None if value is None else _column(key, value)
    return tuple(read(name_of(f"dataset.{key}", each)) for each in as_list(value))
