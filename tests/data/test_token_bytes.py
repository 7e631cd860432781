"""Bytes of tokens: however a tokenizer cuts a text, its tokens stand for all of its bytes, each once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.data.windows import spans, token_bytes

TEXT = st.text(st.one_of(st.sampled_from("aé東🙂 \n"), st.characters(codec="utf-8")), max_size=30)


@settings(max_examples=80, deadline=None)
@given(TEXT, st.data())
def test_the_tokens_of_a_text_stand_for_all_of_its_bytes(text: str, data: st.DataObject) -> None:
    ends = [*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8))), len(text)]
    begins = [data.draw(st.integers(0, end)) for end in ends]  # white space trimmed off, characters of several tokens
    n_bytes_T = token_bytes(text, [(0, 0), *zip(begins, ends, strict=True), (0, 0)])
    assert n_bytes_T.sum() == len(text.encode())
    assert (n_bytes_T >= 0).all()
    assert n_bytes_T[0] == n_bytes_T[-1] == 0, "specials stand for nothing"
    for reached, end in enumerate(ends, 1):
        assert n_bytes_T[: reached + 1].sum() == len(text[:end].encode())


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 200), st.integers(2, 50), st.data())
def test_windows_cover_every_token_and_each_new_one_has_something_before_it(
    n_tokens: int, window: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, window - 1))
    done = 0
    for begin, end in spans(n_tokens, window, stride):
        assert begin == 0 or begin < done, "a window reads again what is before its new tokens"
        assert done < end <= begin + window
        done = end
    assert done == n_tokens
