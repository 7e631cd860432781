"""A tokenizer's chat template renders the conversations before the answers of items.

As lm-evaluation-harness 0.4.13 does with --apply_chat_template: the description stands behind the system text in the
system's message, examples are turns of their own, and the answer follows without its delimiter. The mark of the end of
its turn is not scored.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from rbpx.config.text.items import FEWSHOT_BORDER
from rbpx.data.corpus import Document, Turn
from rbpx.data.items import ASSISTANT
from rbpx.errors import RbpxError, first_line
from rbpx.files.digest import digest

SYSTEM: Final = "system"
USER: Final = "user"
_PROBE: Final = "Is this an answer?", "This is one."  # a question and its answer, by which a template is tried


def turns_of(document: Document, description: str, examples: Sequence[Document]) -> tuple[Turn, ...]:
    """The conversation before the target of an item: its description, its examples, its context."""
    told = [turn for each in examples for turn in ((USER, context_of(each)), (ASSISTANT, answer_of(each)))]
    return (*([(SYSTEM, description)] if description else []), *told, (USER, context_of(document)))


def context_of(document: Document) -> str:
    """What an item's target follows."""
    assert document.part is not None, "an item has a context"
    return document.text[: document.part.n_context]


def answer_of(document: Document) -> str:
    """The target or choice of an item, without its delimiter."""
    assert document.part is not None, "an item has a target"
    return document.text[len(document.text) - document.part.n_characters :]


def rendered(documents: Sequence[Document], tokenizer: Any, system: str | None) -> list[Document]:
    """Items whose contexts are their conversations, up to the assistant's answer; RbpxError where one is refused."""
    items = []
    for document in documents:
        assert document.part is not None, "plain texts are no conversations"
        context = _render(tokenizer, _with_system(document.turns, system), True)
        part = replace(document.part, n_context=len(context))
        items.append(replace(document, text=context + answer_of(document), part=part))
    return items


def chat_identity(tokenizer: Any, system: str | None) -> str:
    """Hash of a tokenizer's chat template and of how it renders a question behind the system text, with any date in it.

    Raises:
        RbpxError: the tokenizer has no template, or its template does not begin the assistant's turn.
    """
    try:
        template = tokenizer.get_chat_template()
    except ValueError:
        raise RbpxError(
            "model.chat=true needs a tokenizer with a chat template, but this one has none; take the model that was "
            "tuned for chat, copy its chat_template.jinja beside the tokenizer, or drop model.chat"
        ) from None
    asked, answer = _with_system([(USER, _PROBE[0])], system), _PROBE[1]
    plain, begun = (_render(tokenizer, asked, begins) for begins in (False, True))
    answered = _render(tokenizer, [*asked, (ASSISTANT, answer)], False)
    header, found, _ = answered.removeprefix(plain).partition(answer)
    if not found or (begun == plain and header.strip()):
        raise RbpxError(
            "model.chat=true: the tokenizer's chat template adds no assistant turn "
            f"{'where add_generation_prompt asks for one' if found else 'with its text'}, so answers would follow the "
            "user's; mend the template (chat_template.jinja), or drop model.chat"
        )
    return digest([template, begun])


def _with_system(turns: Sequence[Turn], system: str | None) -> list[Turn]:
    """A blank line stands between the system text and the system's own unless there is white space."""
    own = turns[0][1] if turns and turns[0][0] == SYSTEM else ""
    if not system:
        return [*turns]
    border = FEWSHOT_BORDER if own and not (system[-1].isspace() or own[0].isspace()) else ""
    return [(SYSTEM, system + border + own), *turns[bool(own) :]]


def _render(tokenizer: Any, turns: Sequence[Turn], begins: bool) -> str:
    from jinja2 import TemplateError

    messages = [{"role": role, "content": text} for role, text in turns]
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begins))
    except (TemplateError, TypeError, ValueError) as problem:
        roles = ", ".join(role for role, _ in turns) or "no messages"
        raise RbpxError(
            f"the tokenizer's chat template refuses a conversation of {roles} ({first_line(problem)}); if it takes no "
            "system, drop model.system= and give dataset.description=''"
        ) from None
