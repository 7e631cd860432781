"""Any text, numbers and format that are typed come back in the request as they were given."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.config.options import Format
from rbpx.config.texts import quoted
from tests.support.composing import request_of
from tests.support.typed import TEXT


@settings(max_examples=100, deadline=None)
@given(
    TEXT.filter(lambda text: "${" not in text and text.strip()),
    st.lists(st.integers(1, 10**6), min_size=1, max_size=4, unique=True),
    st.integers(1, 10**9),
    st.sampled_from(list(Format)),
    st.booleans(),
)
def test_overrides_come_back_in_the_request_as_they_were_given(
    text: str, k: list[int], limit: int, format: Format, fresh: bool
) -> None:
    words = [f"output={quoted(text)}", f"k={k}", f"limit={limit}", f"format={format.value}", f"fresh={fresh}"]
    request = request_of("run", words)
    assert (request.output, request.typed["k"], request.limit) == (text, k, limit)
    assert (request.format, request.fresh) == (format, fresh)
