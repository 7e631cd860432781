"""CSV on request as no spreadsheet runs it, and a link in a store that is not removed."""

import csv
import io
from pathlib import Path

import pytest

from rbpx.store.store import Store
from tests.support.commands import here

QUERY = "SELECT * FROM (VALUES ('=1+1', -1.5, 'a'), ('+x', 2, '-y'), ('@z', 3, chr(9) || 'b')) AS v(a, b, \"=c\")"
PLAIN = [["a", "b", "=c"], ["=1+1", "-1.5", "a"], ["+x", "2.0", "-y"], ["@z", "3.0", "\tb"]]


def quoted(cell: str) -> str:
    """A cell as it is wanted: numbers and plain text as they are."""
    return cell if cell[:1] not in "=+-@\t" or cell == "-1.5" else f"'{cell}"


@pytest.mark.parametrize("verb", ["sql", "export"])
def test_cells_that_a_spreadsheet_would_run_are_quoted_on_request(verb: str, own_store: Path, cwd: Path) -> None:
    words = (verb, QUERY.replace("2, ", "2.0, "), "--format", "csv", "--store", own_store)
    for more, expected in (((), PLAIN), (("spreadsheet=true",), [[quoted(cell) for cell in row] for row in PLAIN])):
        answer = here(*words, *more, cwd=cwd, check=0)
        assert list(csv.reader(io.StringIO(answer.stdout))) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("x;=HYPERLINK(A1)", "x;'=HYPERLINK(A1)"), ("a\tb;-1", "a\tb;'-1"), ("a;b, -c", "a;b, -c"), ("x\n=1", "x\n'=1")],
)
def test_no_part_of_a_cell_is_run_where_another_separator_is_used(
    cell: str, expected: str, own_store: Path, cwd: Path
) -> None:
    query = "SELECT 1 AS n, '" + cell.replace("\t", "' || chr(9) || '").replace("\n", "' || chr(10) || '") + "' AS cell"
    words = ("sql", query, "--format", "csv", "spreadsheet=true", "--store", own_store)
    assert list(csv.reader(io.StringIO(here(*words, cwd=cwd, check=0).stdout)))[1] == ["1", expected]


def test_it_is_for_csv_alone(own_store: Path, cwd: Path) -> None:
    answer = here("status", "--format", "json", "spreadsheet=true", "--store", own_store, cwd=cwd)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "rbpx: spreadsheet=true is for csv, not format=json; drop one of them\n"


def test_a_run_that_is_a_link_is_left_alone(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    run_id = Store(own_store).run_ids()[0]
    folder, elsewhere = own_store / "runs" / run_id, tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    answer = here("store", "rm", run_id, "--store", own_store, cwd=cwd)
    assert answer.returncode == 2
    assert answer.stderr.splitlines() == [
        f"rbpx: {folder} is a link to {elsewhere}, which is left alone; delete the link itself"
    ]
    assert elsewhere.is_dir()
    assert folder.is_symlink()
