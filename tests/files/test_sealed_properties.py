"""Records of any content come back as they were, and no changed character of one goes unnoticed."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.files.digest import digest, read_sealed, write_sealed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.text(max_size=6).filter(lambda name: name != "seal"), VALUES, min_size=1, max_size=4)


@settings(max_examples=12, deadline=None)
@given(RECORDS, st.booleans())
def test_any_record_is_read_back_as_it_was_written(record: dict[str, object], in_lines: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_sealed(Path(folder) / "a.json", record, in_lines, durable=False)
        assert read_sealed(Path(folder) / "a.json") == record


@settings(max_examples=12, deadline=None)
@given(RECORDS, st.data())
def test_any_changed_character_is_noticed(record: dict[str, object], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        write_sealed(path, record, durable=False)
        text = path.read_text(encoding="utf-8")
        at = data.draw(st.integers(0, len(text) - 1))
        other = data.draw(st.characters(min_codepoint=32, max_codepoint=126).filter(lambda c: c != text[at]))
        path.write_text(text[:at] + other + text[at + 1 :], encoding="utf-8")
        with pytest.raises(ValueError, match=r"\S"):
            read_sealed(path)


@settings(max_examples=12, deadline=None)
@given(RECORDS)
def test_a_digest_depends_on_values_not_on_their_order_or_a_way_through_json(record: dict[str, object]) -> None:
    backwards = dict(reversed(list(record.items())))
    assert digest(record) == digest(backwards) == digest(json.loads(json.dumps(record)))
    assert digest(record) != digest({**record, "seal": 1})
