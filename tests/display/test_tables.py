"""Tables made of described columns: what else than being shown they must be able to do."""

import pickle

from rbpx.display.view import View, text, whole


def test_a_table_can_be_sent_to_another_process() -> None:
    view = View[tuple[str, int]]("counts", (text("of", "of", lambda row: row[0]), whole("n", "n", lambda row: row[1])))
    table = view.table("Counts", [("a", 1), ("b", 2_000)])
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    assert again.records() == [{"of": "a", "n": 1}, {"of": "b", "n": 2_000}]
