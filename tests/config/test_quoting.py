"""What is typed reaches its verb as it was typed: Hydra's grammar reads back what we quote, and argv loses no word."""

import shlex

from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.cli.argv import parse
from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.config.texts import quoted
from rbpx.errors import RbpxError
from rbpx.spelling import speaking_shell, typed
from tests.support.composing import request_of

# What a shell can hand over: no NUL, no lone surrogates; quotes, backslashes and Hydra's own signs often.
TEXT = st.text(
    st.one_of(st.sampled_from("\"'\\${}[]()=,:+~ \n\tabc"), st.characters(exclude_categories=["Cs"], min_codepoint=1)),
    max_size=12,
)

PARSER = OverridesParser.create()


@settings(max_examples=60, deadline=None)
@given(TEXT.filter(lambda text: "${" not in text))
def test_the_grammar_reads_a_quoted_value_back_as_the_same_text(text: str) -> None:
    (override,) = PARSER.parse_overrides([f"output={quoted(text)}"])
    assert override.value() == text


@settings(max_examples=40, deadline=None)
@given(TEXT.filter(bool), st.booleans())
def test_a_flag_in_either_spelling_becomes_the_same_override(store: str, joined: bool) -> None:
    if joined or not store.startswith("-"):
        flag = [f"--store={store}"] if joined else ["--store", store]
        assert f"store={quoted(store)}" in parse(["sql", "FROM runs", *flag]).overrides


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXT, max_size=5))
def test_no_word_is_lost_and_nothing_but_a_mistake_is_raised(words: list[str]) -> None:
    try:
        line = parse(["sql", *words])
    except RbpxError:
        return
    kept = [*line.words, *line.overrides, *line.flags]
    assert line.help is not None or line.version or len(kept) >= sum(not word.startswith("-") for word in words)


def test_overrides_come_back_in_the_request_as_they_were_given() -> None:
    text = "a \"b\" 'c' \\ $d [e] {f} (g), h=i:j\n~ü"
    words = [f"output={quoted(text)}", "k=[10,3]", "seed=7", "format=json", "details=true"]
    request = request_of("fit", words)
    assert (request.output, request.typed["k"], request.seed) == (text, [10, 3], 7)
    assert (request.format.value, request.details) == ("json", True)
    each = compose(asking("fit"), ["dataset=[pydoc, 3]", "model=[a,b]"]).requests
    assert [(of.model.family, of.dataset.name) for of in each] == [(a, text) for text in ("pydoc", "3") for a in "ab"]


def test_advice_reads_back_as_the_values_that_it_was_made_of() -> None:
    values = {"slices": {"early": "position < 8", "b": "c, d"}, "size": ["a=b", "c"], "k": [1, 10], "store": "my dir"}
    with speaking_shell():
        words = shlex.split(typed(keys=values))
    assert {each.key_or_group: each.value() for each in PARSER.parse_overrides(words)} == values
