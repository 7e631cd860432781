"""CSV on request as no spreadsheet runs it, and a link in a store that is not removed."""

import csv
import io
from pathlib import Path

import pytest

from rbpx.config.keys.output import QuestionKeys
from rbpx.config.options import Format
from rbpx.errors import RbpxError
from rbpx.files.cells import csv_cell, write_for_spreadsheets
from rbpx.store.store import Store
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

QUERY = "SELECT * FROM (VALUES ('=1+1', -1.5, 'a'), ('+x', 2.0, '-y'), ('@z', 3, chr(9) || 'b')) AS v(a, b, \"=c\")"
PLAIN = [["a", "b", "=c"], ["=1+1", "-1.5", "a"], ["+x", "2.0", "-y"], ["@z", "3.0", "\tb"]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("spreadsheet") / "store"
    return write_store(root, Truth(S=(1_000,)), seed=1, n_documents=2, n_tokens=4)


def quoted(cell: str) -> str:
    """A cell as it is wanted: numbers and plain text as they are."""
    return cell if cell[:1] not in "=+-@\t" or cell == "-1.5" else f"'{cell}"


def test_cells_that_a_spreadsheet_would_run_are_quoted_on_request(store: Store, cwd: Path) -> None:
    safe = [[quoted(cell) for cell in row] for row in PLAIN]
    for verb, more, expected in (
        ("sql", (), PLAIN),
        ("sql", ("spreadsheet=true",), safe),
        ("export", ("spreadsheet=true",), safe),
    ):
        answer = here(verb, QUERY, "--format", "csv", "--store", store.root, *more, cwd=cwd, check=0)
        assert list(csv.reader(io.StringIO(answer.stdout))) == expected


def test_no_part_of_a_cell_is_run_where_another_separator_is_used() -> None:
    write_for_spreadsheets(True)
    try:
        assert csv_cell("x;=HYPERLINK(A1)") == "x;'=HYPERLINK(A1)"
        assert csv_cell("a\tb;-1") == "a\tb;'-1"
        assert csv_cell("a;b, -c") == "a;b, -c"
        assert csv_cell("x\n=1") == "x\n'=1"
        assert csv_cell(-1.5) == -1.5
    finally:
        write_for_spreadsheets(False)
    assert csv_cell("=1") == "=1"


def test_it_is_for_csv_alone() -> None:
    with pytest.raises(RbpxError, match=r"^spreadsheet=true is for csv, not format=json; drop one of them$"):
        QuestionKeys(spreadsheet=True, format=Format.json)


def test_a_run_that_is_a_link_goes_without_what_it_leads_to(store: Store, cwd: Path, tmp_path: Path) -> None:
    run_id = store.run_ids()[0]
    folder, elsewhere = store.root / "runs" / run_id, tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    here("store", "rm", run_id, "--store", store.root, cwd=cwd, check=0)
    assert (elsewhere / "manifest.json").is_file()
    assert not folder.is_symlink()
