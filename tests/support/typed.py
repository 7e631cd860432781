"""Texts that a shell can hand over: no NUL, no lone surrogates; quotes, backslashes and Hydra's own signs often."""

from hypothesis import strategies as st

TEXT = st.text(
    st.one_of(st.sampled_from("\"'\\${}[]()=,:+~ \n\tabc"), st.characters(exclude_categories=["Cs"], min_codepoint=1)),
    max_size=12,
)
