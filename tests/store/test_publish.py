"""A store as a dataset of a hub, read from there as others would."""

import pyarrow as pa
import pyarrow.dataset
import pytest

from rbpx.store.publish import _without_folders


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("/home/me/model", "model"),
        ("~/a b/", "a b"),
        ("C:\\me\\x", "x"),
        ("file:///a/b.txt", "b.txt"),
        ("org/model", "org/model"),
        ("a /b", "a /b"),
        ('{"path": ["/a/b", 1, null]}', '{"path": ["b", 1, null]}'),
        ("{/x", "{/x"),
    ],
)
def test_of_a_path_of_this_machine_the_name_is_published(text: str, published: str) -> None:
    table = _without_folders(pa.table({"text": pa.array([text, None]), "n": [1, 2]}))
    assert table.to_pylist() == [{"text": published, "n": 1}, {"text": None, "n": 2}]
