"""Tables made of described columns: their records, their doubts and what their headings say."""

from rbpx.display.table import STATUS, Column, Table, interval, table_of
from rbpx.laws.names import Axis
from rbpx.status import Status

LAWS = Table(
    "laws", (Column("law", "title law"), *interval("α", "alpha", ".2f"), Column("to {x}", "{x}_to", ",.0f"), STATUS)
)
ROWS = [
    {"title": "one", "law": 1, "alpha": 0.125, "alpha_lo": 0.1, "alpha_hi": None, "D_to": 1000.0, "status": "ok"},
    {"title": "two", "law": 2, "alpha": None, "reasons": ["bends", "mixed"]},
]


def test_records_have_the_keys_of_the_columns_and_doubts_name_the_rows() -> None:
    table = LAWS.of("Laws", ROWS, axis=Axis.D)
    unknown = dict.fromkeys(("alpha", "alpha_lo", "alpha_hi", "D_to"))
    assert table.records() == [
        {key: ROWS[0][key] for key in list(ROWS[0])[1:]},
        {"law": 2, **unknown, "status": "bends"},
    ]
    assert table.doubts() == {Status.bends: ["two"], Status.mixed: ["two"]}
    assert table.shown_doubts() == {Status.bends}
    assert [column.name for column in table.columns] == ["law", "α", "95 %", "to D", "status"]


def test_a_table_shows_what_a_row_says_itself_and_nothing_of_its_params() -> None:
    table = table_of("made", ("α", "alpha"), STATUS).of("Made", [{"params": {"alpha": 1, "reasons": ["bends"]}}])
    assert table.records() == [{"alpha": None, "status": "ok"}]
